import dataclasses

import pytest
from dnslib import CNAME, QTYPE, RR, TXT, A, DNSRecord

from appliance.dns.messages.answers import decode
from appliance.dns.messages.replies import addresses_in, is_reply_to, is_truncated, response_code
from appliance.errors import PeerError
from tests.support.dns import answer, query

ASKED = query("b0.orange", identifier=1000)
QUESTION = decode(ASKED)


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


def test_types_are_told_apart_though_they_look_like_letters():
    # 65 (HTTPS) and 97 are "A" and "a" as octets.
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
