"""The token in the first flight, and what becomes of the handshake's clear text on the wire."""

import contextlib
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import ApplianceError, ClockDiffers, IdentityRefused, PeerError
from appliance.settings.values import Side
from appliance.tunnel.first_flight import (
    CLIENT_HELLO_MAX,
    ClientWire,
    NotProven,
    ServerWire,
    TokenKeys,
    client_hello,
    proof_in,
    token_for,
    with_session_id,
    without_session_id,
)
from appliance.tunnel.proof_check import TOLERANCE, ProofCheck
from appliance.tunnel.tls import TlsLayer
from tests.support.tls import identity, key_of

KEYS = TokenKeys.of(key_of())
NOW = 1_800_000_000.25
SESSION_ID_AT = 43
X25519, X25519MLKEM768 = 29, 4588


def plain_hello() -> bytes:
    """A ClientHello as our client's OpenSSL makes it."""
    tls = TlsLayer(identity(Side.DESTINATION).known.context)
    tls.start()
    return tls.outgoing()


def groups_of(hello: bytes) -> list[int]:
    """The supported_groups of a ClientHello without legacy_session_id (RFC 8446, sections 4.1.2 and 4.2.7)."""
    rest = hello[SESSION_ID_AT + 1 :]
    rest = rest[2 + int.from_bytes(rest[:2], "big") :]
    rest = rest[1 + rest[0] + 2 :]
    while rest:
        kind, size = int.from_bytes(rest[:2], "big"), int.from_bytes(rest[2:4], "big")
        if kind == 10:
            return [int.from_bytes(rest[at : at + 2], "big") for at in range(6, 4 + size, 2)]
        rest = rest[4 + size :]
    return []


def sealed_hello(now: float = NOW, keys: TokenKeys = KEYS) -> bytes:
    """The same as it goes over the wire."""
    hello = plain_hello()
    return with_session_id(hello, token_for(hello, keys, now))


def check_at(now: float = NOW) -> ProofCheck:
    return ProofCheck(KEYS, lambda: now, lambda: now)


def test_a_proof_gives_back_the_hello_as_openssl_made_it_and_when() -> None:
    hello = plain_hello()
    token = token_for(hello, KEYS, NOW)
    proof = proof_in(with_session_id(hello, token), KEYS)
    assert (proof.hello, proof.token, proof.time) == (hello, token, NOW)


def test_every_version_makes_the_same_token() -> None:
    token = token_for(bytes(range(60)), TokenKeys(b"tag key", b"time key"), NOW)
    assert token.hex() == "540f86f02ea98e88e4824be210290cf46b72311b1077322c1126985dab410259"


def test_on_the_wire_a_hello_is_one_of_ordinary_tls_1_3() -> None:
    """One record of a ClientHello with 32 bytes of legacy_session_id, whose lengths all agree."""
    wire = sealed_hello()
    assert (wire[0], wire[5], wire[SESSION_ID_AT]) == (22, 1, 32)
    assert int.from_bytes(wire[3:5], "big") == len(wire) - 5
    assert int.from_bytes(wire[6:9], "big") == len(wire) - 9
    assert len({sealed_hello()[SESSION_ID_AT + 1 : SESSION_ID_AT + 33] for _ in range(20)}) == 20


def test_the_two_ends_offer_x25519_and_at_most_its_post_quantum_hybrid() -> None:
    assert groups_of(plain_hello()) in ([X25519], [X25519MLKEM768, X25519])


@given(at=st.integers(0, 10_000), change=st.integers(1, 255))
def test_no_byte_of_a_hello_can_be_changed(at: int, change: int) -> None:
    wire = bytearray(sealed_hello())
    wire[at % len(wire)] ^= change
    with contextlib.suppress(IdentityRefused):
        assert check_at().examine(bytes(wire)) is None


@given(st.binary(max_size=300))
def test_no_bytes_of_a_strangers_are_a_proof_or_break_anything(received: bytes) -> None:
    for first in (received, b"\x16\x03\x01" + received, sealed_hello()[:50] + received):
        with contextlib.suppress(IdentityRefused):
            assert check_at().examine(first) is None


@given(cut=st.integers(0, 10_000))
def test_a_hello_that_has_not_all_come_is_waited_for(cut: int) -> None:
    wire = sealed_hello()
    assert check_at().examine(wire[: cut % len(wire)]) is None


@pytest.mark.parametrize(
    "received",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"\x16\x02",
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x00\x10",
        b"\x16\x03\x01\x02\x00\x02",
        b"\x80",
    ],
)
def test_what_cannot_become_a_hello_is_not_waited_for(received: bytes) -> None:
    with pytest.raises(NotProven):
        client_hello(received)


def test_bytes_behind_a_hello_are_none_of_our_clients() -> None:
    with pytest.raises(NotProven):
        client_hello(sealed_hello() + b"\0")


def test_a_hello_of_any_length_is_held_up_to_a_bound() -> None:
    assert client_hello(b"\x16\x03\x01" + (CLIENT_HELLO_MAX - 5).to_bytes(2, "big")) is None
    with pytest.raises(NotProven):
        client_hello(b"\x16\x03\x01" + (CLIENT_HELLO_MAX - 4).to_bytes(2, "big"))


def test_the_token_of_one_hello_is_none_for_another() -> None:
    _, token = without_session_id(sealed_hello())
    with pytest.raises(IdentityRefused):
        check_at().examine(with_session_id(plain_hello(), token))


@pytest.mark.parametrize("ids", [("orange", "melon"), ("orange-grape", "")])
def test_the_token_of_one_link_is_none_for_another(ids: tuple[str, str]) -> None:
    with pytest.raises(IdentityRefused):
        check_at().examine(sealed_hello(keys=TokenKeys.of(key_of(ids=ids))))


def test_a_hello_is_good_once() -> None:
    check, wire = check_at(), sealed_hello()
    assert check.examine(wire)
    with pytest.raises(IdentityRefused, match="recorded"):
        check.examine(wire)


def test_a_hello_is_not_good_once_more_when_its_token_is_forgotten() -> None:
    now = NOW
    check = ProofCheck(KEYS, lambda: now, lambda: now)
    wire = sealed_hello(NOW + TOLERANCE)
    assert check.examine(wire)
    for _ in range(50):
        now += TOLERANCE / 10
        with pytest.raises(IdentityRefused):
            check.examine(wire)
        check.examine(sealed_hello(now))


def test_no_more_tokens_are_remembered_than_can_be_played_again() -> None:
    now = NOW
    check = ProofCheck(KEYS, lambda: now, lambda: now)
    for _ in range(200):
        now += TOLERANCE / 10
        check.examine(sealed_hello(now))
    assert len(check._seen) <= 21


@pytest.mark.parametrize(("ahead", "said"), [(TOLERANCE + 1, "ahead of"), (-TOLERANCE - 1, "behind")])
def test_a_hello_of_another_time_is_told_apart_from_a_wrong_secret(ahead: float, said: str) -> None:
    with pytest.raises(ClockDiffers, match=f"121 s {said} ours"):
        check_at().examine(sealed_hello(NOW + ahead))


@pytest.mark.parametrize("ahead", [TOLERANCE - 1, -TOLERANCE + 1])
def test_clocks_may_differ_a_little(ahead: float) -> None:
    assert check_at().examine(sealed_hello(NOW + ahead))


class Handshake:
    """Our client and our server with the wire between them."""

    def __init__(self) -> None:
        self.client = TlsLayer(identity(Side.DESTINATION).known.context, ClientWire(KEYS, NOW))
        self.client.start()
        hello = self.client.outgoing()
        proof = check_at().examine(hello)
        assert proof
        self.token = proof.token
        self.server = TlsLayer(identity(Side.SOURCE).known.context, ServerWire(proof.token))
        self.server.receive(proof.hello)

    def finish(self, answer: bytes, step: int) -> None:
        """Bring the server's ``answer`` to the client in pieces, and the client's to the server."""
        for at in range(0, len(answer), step):
            self.client.receive(answer[at : at + step])
        self.server.receive(self.client.outgoing())


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_the_ends_shake_hands_whatever_the_pieces_that_come(step: int) -> None:
    ends = Handshake()
    ends.finish(ends.server.outgoing(), step)
    assert ends.client.handshaken
    assert ends.server.handshaken
    ends.server.send(b"x")
    assert ends.client.receive(ends.server.outgoing()) == b"x"


def records(data: bytes) -> list[tuple[int, bytes]]:
    found = []
    while data:
        size = 5 + int.from_bytes(data[3:5], "big")
        found.append((data[0], data[:size]))
        data = data[size:]
    return found


def test_on_the_wire_the_answers_are_those_of_ordinary_tls_1_3() -> None:
    """A ServerHello that echoes legacy_session_id, change_cipher_spec at both ends, and all else is encrypted."""
    ends = Handshake()
    answer = ends.server.outgoing()
    kinds = [kind for kind, _ in records(answer)]
    _, echoed = without_session_id(records(answer)[0][1])
    assert (kinds[:2], set(kinds[2:])) == ([22, 20], {23})
    assert echoed == ends.token
    ends.client.receive(answer)
    kinds = [kind for kind, _ in records(ends.client.outgoing())]
    assert (kinds[0], set(kinds[1:])) == (20, {23})


def test_a_server_that_does_not_echo_the_token_is_not_ours() -> None:
    ends = Handshake()
    answer = bytearray(ends.server.outgoing())
    answer[SESSION_ID_AT + 5] ^= 1
    with pytest.raises(PeerError, match="echoed"):
        ends.client.receive(answer)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request", b"SSH-2.0-OpenSSH", b"\x16\x03\x03\x00\x04\x02\0\0\0"])
def test_whatever_is_no_server_of_ours_is_the_peers_error(answer: bytes) -> None:
    ends = Handshake()
    with pytest.raises(PeerError):
        ends.client.receive(answer)


@given(st.binary(min_size=1, max_size=200))
def test_no_answer_breaks_a_client(answer: bytes) -> None:
    client = TlsLayer(identity(Side.DESTINATION).known.context, ClientWire(KEYS, NOW))
    client.start()
    client.outgoing()
    for first in (answer, b"\x16\x03\x03" + answer, b"\x15\x03\x03" + answer):
        try:
            client.receive(first)
        except ApplianceError:
            return


def test_a_client_that_offers_nothing_of_ours_costs_no_exchange_of_keys() -> None:
    """Case 21: a finite field of 8192 bits took a tenth of a second, for who knew the secret and for who did not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.options &= ~ssl.OP_ENABLE_MIDDLEBOX_COMPAT
    context.set_ecdh_curve("ffdhe8192")
    client = TlsLayer(context)
    client.start()
    server = TlsLayer(identity(Side.SOURCE).known.context)
    with pytest.raises(PeerError, match="no suitable"):
        server.receive(client.outgoing())


@pytest.mark.parametrize("length", [0, 31, 33, 89, 91, 2**24 - 1])
def test_case_24_a_server_hello_that_lies_about_its_length_is_the_peers_error(length: int) -> None:
    """It raised OverflowError in asyncio's callback, which inside SSH ended all connections."""
    ends = Handshake()
    answer = bytearray(ends.server.outgoing())
    honest = int.from_bytes(answer[6:9], "big")
    answer[6:9] = (length if length != honest else length + 1).to_bytes(3, "big")
    with pytest.raises(PeerError):
        ends.client.receive(answer)


def test_a_clock_before_1970_makes_a_token_of_its_first_moment() -> None:
    hello = plain_hello()
    assert proof_in(with_session_id(hello, token_for(hello, KEYS, -5.0)), KEYS).time == 0
