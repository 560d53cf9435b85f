import pytest
from dnslib import QTYPE, DNSRecord

from appliance.dns.messages.answers import decode
from appliance.dns.messages.question import Edns, Question
from appliance.dns.messages.wire import Flag
from tests.support.dns import query


def asked(name=(b"b0", b"orange"), edns=None):
    return Question(7, Flag.RECURSION_DESIRED, name, QTYPE.A, edns)


def test_a_question_about_addresses_is_recursive_and_without_edns():
    parsed = DNSRecord.parse(Question.for_addresses("B0.Orange.").encode())
    assert (str(parsed.q.qname), parsed.q.qtype, parsed.header.rd, parsed.ar) == ("b0.orange.", QTYPE.A, 1, [])


def test_questions_have_ids_that_cannot_be_guessed():
    assert len({Question.for_addresses("b0.orange").identifier for _ in range(50)}) > 40


@pytest.mark.parametrize("host", ["", ".", "a..b", "a" * 64 + ".b", "ä.orange", ".".join(["abcdefg"] * 32)])
def test_what_cannot_be_a_name_is_refused(host):
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
def test_the_largest_datagram_is_what_the_asker_offers_within_bounds(size, limit):
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
