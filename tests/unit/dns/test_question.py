import dataclasses

import pytest
from dnslib import CNAME, QTYPE, RR, TXT, A, DNSRecord

from appliance.dns.messages.answers import decode
from appliance.dns.messages.question import (
    Edns,
    Question,
    addresses_in,
    is_reply_to,
    is_truncated,
    response_code,
)
from appliance.dns.messages.wire import Flag
from appliance.errors import PeerError
from tests.support.dns import answer, query

ASKED = query("b0.orange", identifier=1000)
QUESTION = decode(ASKED)


def asked(name=(b"b0", b"orange"), edns=None):
    return Question(7, Flag.RECURSION_DESIRED, name, QTYPE.A, edns)


def test_a_question_about_addresses_is_recursive_and_without_edns():
    parsed = DNSRecord.parse(Question.for_addresses("B0.Orange.").encode())
    assert (str(parsed.q.qname), parsed.q.qtype, parsed.header.rd, parsed.ar) == ("b0.orange.", QTYPE.A, 1, [])


def test_questions_have_ids_that_cannot_be_guessed():
    assert len({Question.for_addresses("b0.orange").identifier for _ in range(50)}) > 40


@pytest.mark.parametrize("host", ["", ".", "a..b", "a" * 64 + ".b", "ä.orange", ".".join(["abcdefg"] * 32)])
def test_an_illegal_name_is_refused(host):
    with pytest.raises(ValueError, match=r"labels of|ascii"):
        Question.for_addresses(host)


def test_a_name_of_253_characters_can_be_asked_for():
    host = ".".join(["a" * 63] * 3 + ["a" * 61])
    assert decode(Question.for_addresses(host).encode()).host == host


def test_the_host_is_the_name_in_its_normal_spelling():
    assert asked((b"B0", b"oRange")).host == "b0.orange"


def test_octets_that_no_host_name_holds_cannot_be_mistaken_for_one():
    assert asked((b"b0.orange",)).host == "b0\\046orange"
    assert asked((b"\xff \\",)).host == "\\255\\032\\092"
    assert asked(()).host == ""


@pytest.mark.parametrize("name", [(), (b"b0", b"oRange"), (b"\xff.", b"\x00")])
def test_a_name_of_any_octets_is_asked_for_as_it_is(name):
    assert decode(asked(name).encode()) == asked(name)


@pytest.mark.parametrize(("size", "limit"), [(0, 512), (100, 512), (512, 512), (900, 900), (1232, 1232), (65535, 1232)])
def test_the_largest_datagram_is_the_clients_offer_within_bounds(size, limit):
    assert asked(edns=Edns(size, 0, dnssec_ok=False)).udp_limit == limit


def test_without_edns_the_largest_datagram_has_512_octets():
    assert asked().udp_limit == 512


def test_the_query_for_the_upstream_keeps_case_flags_and_dnssec_bit_and_offers_our_own_size():
    original = DNSRecord.parse(query("B0.oRange", "HTTPS", udp_size=4096))
    original.header.cd = 1
    original.ar[0].edns_do = 1
    parsed = DNSRecord.parse(decode(original.pack()).encode())
    assert str(parsed.q.qname) == "B0.oRange."
    assert (parsed.header.rd, parsed.header.cd, parsed.header.qr) == (1, 1, 0)
    assert (parsed.ar[0].edns_len, parsed.ar[0].edns_do) == (1232, 1)


def test_the_answer_to_a_question_is_recognised_in_whatever_case_it_comes():
    assert is_reply_to(QUESTION, answer(ASKED, "10.0.0.1"))
    assert is_reply_to(QUESTION, answer(query("B0.Orange", identifier=1000), "10.0.0.1"))


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(ASKED, id="a query"),
        pytest.param(answer(query("b0.orange", identifier=1001)), id="another id"),
        pytest.param(answer(query("b1.orange", identifier=1000)), id="another name"),
        pytest.param(answer(query("b0.orange", "AAAA", identifier=1000)), id="another type"),
        pytest.param(answer(ASKED)[:4] + bytes(8), id="no question"),
        pytest.param(answer(ASKED)[:20], id="cut"),
        pytest.param(answer(ASKED)[:2] + b"\xa8" + answer(ASKED)[3:], id="another opcode"),
        pytest.param(answer(ASKED)[:-1] + b"\x03", id="another class"),
    ],
)
def test_anything_else_is_no_answer(message):
    assert not is_reply_to(QUESTION, message)


def test_types_that_look_like_letters_are_distinguished():
    # As octets, 65 (HTTPS) and 97 are "A" and "a".
    https = dataclasses.replace(QUESTION, record_type=65)
    assert not is_reply_to(https, dataclasses.replace(QUESTION, record_type=97).message(0x8000))


def test_only_ipv4_addresses_of_the_answer_section_are_taken():
    reply = DNSRecord.parse(answer(ASKED))
    reply.add_answer(RR("b0.orange", QTYPE.CNAME, rdata=CNAME("lb.orange")))
    reply.add_answer(RR("lb.orange", QTYPE.TXT, rdata=TXT("four")))
    reply.add_answer(*(RR("lb.orange", QTYPE.A, rdata=A(address)) for address in ("10.0.0.2", "10.0.0.1")))
    reply.add_ar(RR("other.orange", QTYPE.A, rdata=A("10.9.9.9")))
    assert addresses_in(reply.pack()) == ("10.0.0.2", "10.0.0.1")


def test_a_cut_reply_is_the_servers_fault():
    with pytest.raises(PeerError):
        addresses_in(answer(ASKED, "10.0.0.1")[:-1])


@pytest.mark.parametrize(
    ("code", "name"), [(0, "NOERROR"), (2, "SERVFAIL"), (3, "NXDOMAIN"), (5, "REFUSED"), (14, "14")]
)
def test_the_outcome_has_the_protocols_name(code, name):
    assert response_code(QUESTION.message(0x8000, code)) == name


def test_truncation_is_seen():
    assert is_truncated(QUESTION.message(0x8200))
    assert not is_truncated(QUESTION.message(0x8000))
