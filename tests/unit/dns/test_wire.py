import pytest
from dnslib import QTYPE, RR, TXT, A, DNSRecord

from appliance.dns.messages.wire import read_head, read_sections
from appliance.errors import PeerError
from tests.support.dns import answer, query

HEADER = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
A_IN = b"\x00\x01\x00\x01"


def test_the_head_holds_the_header_and_the_question_as_they_came():
    head = read_head(query("B0.oRange", "AAAA", identifier=77))
    assert (head.identifier, head.name, head.record_type, head.record_class) == (77, (b"B0", b"oRange"), 28, 1)


def test_the_root_is_a_name_without_labels():
    assert read_head(HEADER + b"\x00" + A_IN).name == ()


def test_labels_may_hold_any_octet():
    assert read_head(HEADER + b"\x02\xff.\x00" + A_IN).name == (b"\xff.",)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(b"", id="no question"),
        pytest.param(b"\x05abc", id="cut in a label"),
        pytest.param(b"\x01a\x00\x00\x01", id="cut in the class"),
        pytest.param(b"\xc0\x0c" + A_IN, id="a pointer to itself"),
        pytest.param(b"\x01a\xc0\x00" + A_IN, id="a pointer into the header"),
        pytest.param(b"\x40" + b"a" * 64 + b"\x00" + A_IN, id="a label of 64 octets"),
        pytest.param((b"\x3f" + b"a" * 63) * 4 + b"\x00" + A_IN, id="a name of 257 octets"),
    ],
)
def test_an_illegal_question_is_the_peers_fault(question):
    with pytest.raises(PeerError):
        read_head(HEADER + question)


def test_a_name_of_255_octets_is_the_longest():
    name = (b"\x3f" + b"a" * 63) * 3 + b"\x3d" + b"a" * 61
    assert len(name) + 1 == 255
    assert len(read_head(HEADER + name + b"\x00" + A_IN).name) == 4
    with pytest.raises(PeerError, match="255"):
        read_head(HEADER + (b"\x3f" + b"a" * 63) * 3 + b"\x3e" + b"a" * 62 + b"\x00" + A_IN)


@pytest.mark.parametrize("count", [0, 2, 65535])
def test_exactly_one_question_is_asked_at_a_time(count):
    with pytest.raises(PeerError, match=f"{count} questions"):
        read_head(HEADER[:4] + count.to_bytes(2, "big") + HEADER[6:] + b"\x01a\x00" + A_IN)


def test_records_come_section_by_section_with_compressed_names_and_data_as_it_is():
    reply = DNSRecord.parse(answer(query("b0.orange"), "10.0.0.1", "10.0.0.2"))
    reply.add_ar(RR("other.b0.orange", QTYPE.TXT, rdata=TXT("text")))
    message = reply.pack()
    sections = read_sections(message, read_head(message))
    assert [record.data for record in sections.answers] == [b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02"]
    assert sections.authorities == ()
    assert [(record.record_type, record.at_root) for record in sections.additionals] == [(QTYPE.TXT, False)]


def test_an_opt_record_stands_at_the_root():
    message = query("b0.orange", udp_size=4096)
    (option,) = read_sections(message, read_head(message)).additionals
    assert (option.at_root, option.record_type, option.record_class) == (True, 41, 4096)


def test_records_that_are_announced_but_cut_are_the_peers_fault():
    message = answer(query("b0.orange"), "10.0.0.1")
    for size in range(27, len(message)):
        with pytest.raises(PeerError):
            read_sections(message[:size], read_head(message[:size]))


def test_a_reserved_label_type_in_a_record_is_the_peers_fault():
    record = RR("b0.orange", QTYPE.A, rdata=A("10.0.0.1"))
    message = DNSRecord.parse(query("b0.orange"))
    message.add_answer(record)
    packed = bytearray(message.pack())
    packed[27] = 0x80
    with pytest.raises(PeerError, match="unknown type"):
        read_sections(bytes(packed), read_head(bytes(packed)))
