import ipaddress

import pytest
from dnslib import CLASS, EDNS0, QTYPE, RCODE, RR, A, DNSQuestion, DNSRecord, EDNSOption
from hypothesis import given
from hypothesis import strategies as st

from appliance.dns.messages.answers import MAPPED_TTL, Dismissed, answer_mapped, decode, refuse, servfail, truncate
from appliance.dns.messages.question import Question, is_reply_to
from tests.support.dns import addresses, answer, query

ADDRESS = ipaddress.IPv4Address("127.64.0.1")


def dismissed(message):
    decision = decode(bytes(message))
    assert isinstance(decision, Dismissed)
    assert decision.reply is not None
    return DNSRecord.parse(decision.reply)


def test_a_mapped_name_has_its_address_for_a_short_time():
    reply = DNSRecord.parse(answer_mapped(decode(query("b0.orange", identifier=99)), ADDRESS))
    assert (reply.header.id, reply.header.qr, reply.header.rcode) == (99, 1, RCODE.NOERROR)
    assert addresses(reply) == ["127.64.0.1"]
    assert reply.rr[0].ttl == MAPPED_TTL


@pytest.mark.parametrize("kind", ["AAAA", "HTTPS", "SVCB", "MX", "TXT", "NS", "SOA", "CNAME", "SRV", "PTR", "ANY"])
def test_any_other_type_of_a_mapped_name_exists_not_but_the_name_does(kind):
    reply = DNSRecord.parse(answer_mapped(decode(query("b0.orange", kind)), ADDRESS))
    assert (reply.header.rcode, reply.rr, reply.auth) == (RCODE.NOERROR, [], [])
    assert reply.q.qtype == getattr(QTYPE, kind)


def test_a_type_that_has_no_name_yet_is_answered_like_the_others():
    message = DNSRecord(q=DNSQuestion("b0.orange", 65280)).pack()
    assert DNSRecord.parse(answer_mapped(decode(message), ADDRESS)).rr == []


def test_an_empty_answer_is_not_taken_for_a_lame_servers():
    reply = DNSRecord.parse(answer_mapped(decode(query("b0.orange", "AAAA")), ADDRESS))
    assert (reply.header.aa, reply.header.ra) == (1, 1)


def test_the_name_is_matched_without_case_and_echoed_in_the_askers():
    question = decode(query("b0.OrAnGe"))
    assert question.host == "b0.orange"
    reply = DNSRecord.parse(answer_mapped(question, ADDRESS))
    assert (str(reply.q.qname), str(reply.rr[0].rname)) == ("b0.OrAnGe.", "b0.OrAnGe.")


@pytest.mark.parametrize(("make", "code"), [(refuse, RCODE.REFUSED), (servfail, RCODE.SERVFAIL)])
def test_a_refusal_and_a_failure_echo_the_question(make, code):
    reply = DNSRecord.parse(make(decode(query("b0.orange", identifier=3))))
    assert (reply.header.id, reply.header.rcode, str(reply.q.qname), reply.rr) == (3, code, "b0.orange.", [])


def test_flags_of_the_asker_are_echoed_as_the_rfcs_say():
    asked = DNSRecord.parse(query("b0.orange"))
    asked.header.rd, asked.header.cd, asked.header.ad, asked.header.tc = 0, 1, 1, 1
    header = DNSRecord.parse(answer_mapped(decode(asked.pack()), ADDRESS)).header
    assert (header.rd, header.cd, header.ad, header.tc) == (0, 1, 0, 0)


@pytest.mark.parametrize("size", range(12))
def test_less_than_a_header_is_met_with_silence(size):
    assert decode(query("b0.orange")[:size]) == Dismissed(None)


def test_a_response_is_met_with_silence():
    assert decode(answer(query("b0.orange"))) == Dismissed(None)


@pytest.mark.parametrize("opcode", [1, 2, 3, 4, 5, 15])
def test_an_opcode_other_than_query_is_not_implemented(opcode):
    message = DNSRecord.parse(query("b0.orange", identifier=8))
    message.header.opcode = opcode
    reply = dismissed(message.pack())
    assert (reply.header.id, reply.header.opcode, reply.header.rcode) == (8, opcode, RCODE.NOTIMP)


@pytest.mark.parametrize("questions", [0, 2])
def test_not_exactly_one_question_is_a_format_error(questions):
    message = DNSRecord.parse(query("b0.orange", identifier=8))
    message.questions = message.questions * questions
    assert dismissed(message.pack()).header.rcode == RCODE.FORMERR


def test_a_cut_query_is_a_format_error_with_its_id():
    message = query("b0.orange", identifier=513, udp_size=1232)
    for size in range(12, len(message)):
        reply = dismissed(message[:size])
        assert (reply.header.id, reply.header.qr, reply.header.rcode) == (513, 1, RCODE.FORMERR)


def test_case_1066_a_query_of_thousands_of_records_is_refused_before_they_are_read():
    # Before, thirty such datagrams a second took a whole core from the tunnel's end, in which the shim runs.
    message = DNSRecord.parse(query("b0.orange", identifier=8))
    message.add_ar(EDNS0(), *[RR(".", ttl=0, rdata=A("0.0.0.0"))] * 5_000)
    reply = dismissed(message.pack())
    assert (reply.header.id, reply.header.rcode) == (8, RCODE.FORMERR)


@pytest.mark.parametrize("record_class", [CLASS.CH, CLASS.CS, 254, 255, 4000])
def test_a_class_other_than_internet_is_refused(record_class):
    reply = dismissed(DNSRecord(q=DNSQuestion("b0.orange", 16, record_class)).pack())
    # Case 6: before, the reply's question had class IN, so dig dropped the reply and waited.
    assert (reply.header.rcode, reply.q.qclass) == (RCODE.REFUSED, record_class)


@pytest.mark.parametrize("kind", ["AXFR", "IXFR"])
def test_a_zone_transfer_is_refused(kind):
    assert dismissed(query("b0.orange", kind)).header.rcode == RCODE.REFUSED


def test_an_askers_edns_is_met_with_ours_and_its_options_are_ignored():
    message = DNSRecord.parse(query("b0.orange"))
    message.add_ar(EDNS0(udp_len=4096, flags="do", opts=[EDNSOption(10, b"a cookie"), EDNSOption(65001, b"")]))
    (option,) = DNSRecord.parse(answer_mapped(decode(message.pack()), ADDRESS)).ar
    assert (option.edns_len, option.edns_ver, option.edns_do, option.rdata) == (1232, 0, 1, [])


def test_without_edns_the_reply_has_none():
    assert DNSRecord.parse(answer_mapped(decode(query("b0.orange")), ADDRESS)).ar == []


def test_an_edns_version_of_the_future_is_answered_with_ours():
    reply = dismissed(query("b0.orange", udp_size=1232, version=1))
    (option,) = reply.ar
    assert (reply.header.rcode, option.edns_rcode, option.edns_ver) == (0, 1, 0)


@pytest.mark.parametrize("options", [[EDNS0(), EDNS0()], [EDNS0("b0.orange")]])
def test_two_opt_records_or_one_below_the_root_are_a_format_error(options):
    message = DNSRecord.parse(query("b0.orange"))
    message.add_ar(*options)
    assert dismissed(message.pack()).header.rcode == RCODE.FORMERR


def test_a_reply_within_the_limit_is_left_as_it_is():
    reply = answer(query("b0.orange"), "10.0.0.1")
    assert truncate(decode(query("b0.orange")), reply, len(reply)) is reply


@pytest.mark.parametrize("udp_size", [0, 1232])
def test_a_reply_above_the_limit_keeps_its_header_and_question_only(udp_size):
    asked = query("b0.orange", identifier=5, udp_size=udp_size)
    whole = answer(asked, *(f"10.0.0.{index}" for index in range(100)))
    short = truncate(decode(asked), whole, 512)
    reply = DNSRecord.parse(short)
    assert len(short) <= 512
    assert (reply.header.id, reply.header.qr, reply.header.tc, reply.header.rcode) == (5, 1, 1, 0)
    assert (str(reply.q.qname), reply.rr, len(reply.ar)) == ("b0.orange.", [], bool(udp_size))


def test_a_truncated_refusal_stays_a_refusal():
    question = decode(query("b0.orange"))
    assert DNSRecord.parse(truncate(question, refuse(question), 12)).header.rcode == RCODE.REFUSED


QUERY = query("b0.orange", udp_size=1232)


def overwritten(position, octet):
    return QUERY[:position] + bytes([octet]) + QUERY[position + 1 :]


FLAGS = st.sampled_from([b"\x01\x00", b"\x00\x00", b"\x01\x20", b"\x81\x80", b"\x28\x00"])
COUNTS = st.integers(0, 2).map(lambda count: bytes([0, count]))
LABELS = st.binary(min_size=1, max_size=70).map(lambda label: bytes([len(label)]) + label)
TYPES = st.sampled_from([b"\x00\x00\x01\x00\x01", b"\x00\x00\x1c\x00\x01", b"\x00\x00\x01\x00\x03", b""])
NEAR_QUERIES = st.tuples(
    st.binary(min_size=2, max_size=2),
    FLAGS,
    COUNTS,
    COUNTS,
    COUNTS,
    COUNTS,
    LABELS,
    LABELS,
    TYPES,
    st.binary(max_size=60),
).map(b"".join)
SPOILT_QUERIES = st.builds(overwritten, st.integers(0, len(QUERY) - 1), st.integers(0, 255))


@given(st.one_of(st.binary(max_size=600), NEAR_QUERIES, SPOILT_QUERIES))
def test_no_bytes_make_the_shim_fail_and_every_reply_is_a_response_to_its_query(message):
    decision = decode(message)
    if isinstance(decision, Question):
        assert is_reply_to(decision, answer_mapped(decision, ADDRESS))
        assert is_reply_to(decision, truncate(decision, servfail(decision), 12))
        assert decode(decision.encode()).host == decision.host
    elif decision.reply is not None:
        assert decision.reply[:2] == message[:2]
        assert decision.reply[2] & 0x80
