"""The token in the first flight, and the handshake's clear text on the wire."""

import contextlib
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import ApplianceError, ClockDiffers, IdentityRefused, PeerError
from appliance.settings.values import KeyExchange, Side
from appliance.tls.engine import TlsLayer
from appliance.tls.first_flight import (
    CLIENT_HELLO_MAX,
    ClientWire,
    NotProven,
    ServerWire,
    TokenKeys,
    client_hello,
    offers_only,
    proof_in,
    token_for,
    with_session_id,
    without_session_id,
)
from appliance.tls.proof_check import TOLERANCE, ProofCheck
from bench.lib.tunnel_strangers import hello
from tests.support.tls import identity, key_of, known

KEYS = TokenKeys.of(key_of())
NOW = 1_800_000_000.25
SESSION_ID_AT = 43
X25519, X25519MLKEM768 = 29, 4588


def plain_hello() -> bytes:
    """A ClientHello from our client's OpenSSL."""
    tls = TlsLayer(identity(Side.DESTINATION).tls.context)
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
    """A ClientHello as it is sent over the wire."""
    hello = plain_hello()
    return with_session_id(hello, token_for(hello, keys, now))


def _names_x25519() -> bool:
    """True unless this Python cannot tell OpenSSL the one curve, as 3.11.2 cannot."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with contextlib.suppress(ssl.SSLError):
        context.set_ecdh_curve("X25519")
        return True
    return hasattr(context, "set_groups")


NAMES_X25519 = _names_x25519()


def check_at(now: float = NOW) -> ProofCheck:
    return ProofCheck(KEYS, lambda: now, lambda: now, KeyExchange.X25519)


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
    groups = groups_of(plain_hello())
    assert groups in ([X25519], [X25519MLKEM768, X25519]) if NAMES_X25519 else X25519 in groups


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
def test_bytes_that_cannot_become_a_hello_are_not_waited_for(received: bytes) -> None:
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
    check = ProofCheck(KEYS, lambda: now, lambda: now, KeyExchange.X25519)
    wire = sealed_hello(NOW + TOLERANCE)
    assert check.examine(wire)
    for _ in range(50):
        now += TOLERANCE / 10
        with pytest.raises(IdentityRefused):
            check.examine(wire)
        check.examine(sealed_hello(now))


def test_no_more_tokens_are_remembered_than_can_be_played_again() -> None:
    now = NOW
    check = ProofCheck(KEYS, lambda: now, lambda: now, KeyExchange.X25519)
    for _ in range(200):
        now += TOLERANCE / 10
        check.examine(sealed_hello(now))
    assert len(check.tokens) <= 21


@pytest.mark.parametrize(("ahead", "said"), [(TOLERANCE + 1, "ahead of"), (-TOLERANCE - 1, "behind")])
def test_a_hello_of_another_time_is_distinguished_from_a_wrong_secret(ahead: float, said: str) -> None:
    with pytest.raises(ClockDiffers, match=f"121 s {said} ours"):
        check_at().examine(sealed_hello(NOW + ahead))


@pytest.mark.parametrize("ahead", [TOLERANCE - 1, -TOLERANCE + 1])
def test_clocks_may_differ_a_little(ahead: float) -> None:
    assert check_at().examine(sealed_hello(NOW + ahead))


class Handshake:
    """Our client and our server with the wire between them."""

    def __init__(self, client: ssl.SSLContext | None = None, server: ssl.SSLContext | None = None) -> None:
        self.client = TlsLayer(client or identity(Side.DESTINATION).tls.context, ClientWire(KEYS, NOW))
        self.client.start()
        hello = self.client.outgoing()
        proof = check_at().examine(hello)
        assert proof
        self.proof = proof
        self.server = TlsLayer(server or identity(Side.SOURCE).tls.context, ServerWire(proof.token))
        self.server.receive(proof.hello)

    def finish(self, answer: bytes, step: int) -> None:
        """Pass the server's ``answer`` to the client in pieces, and the client's to the server."""
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
    assert echoed == ends.proof.token
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
def test_a_server_that_is_not_ours_is_the_peers_error(answer: bytes) -> None:
    ends = Handshake()
    with pytest.raises(PeerError):
        ends.client.receive(answer)


@given(st.binary(min_size=1, max_size=200))
def test_no_answer_breaks_a_client(answer: bytes) -> None:
    client = TlsLayer(identity(Side.DESTINATION).tls.context, ClientWire(KEYS, NOW))
    client.start()
    client.outgoing()
    for first in (answer, b"\x16\x03\x03" + answer, b"\x15\x03\x03" + answer):
        try:
            client.receive(first)
        except ApplianceError:
            return


FFDHE8192, P256 = 0x0104, 0x0017


def with_key_shares(hello: bytes, *groups: int) -> bytes:
    """The hello with key shares of these groups, eight bytes each, in place of its own."""
    at = hello.index(b"\0\x33", SESSION_ID_AT)
    size = int.from_bytes(hello[at + 2 : at + 4], "big")
    shares = b"".join(group.to_bytes(2, "big") + b"\0\x08" + bytes(8) for group in groups)
    extension = len(shares).to_bytes(2, "big") + shares
    change = len(extension) - size
    made = bytearray(hello[: at + 2] + len(extension).to_bytes(2, "big") + extension + hello[at + 4 + size :])
    # The lengths of the record, of the message, and, after ciphers and compression, of all extensions.
    ciphers = int.from_bytes(made[SESSION_ID_AT + 1 : SESSION_ID_AT + 3], "big")
    for begin, width in ((3, 2), (6, 3), (SESSION_ID_AT + 1 + 2 + ciphers + 2, 2)):
        length = int.from_bytes(made[begin : begin + width], "big") + change
        made[begin : begin + width] = length.to_bytes(width, "big")
    return bytes(made)


@pytest.mark.parametrize(
    ("groups", "cheap"),
    [
        ([X25519], True),
        ([X25519MLKEM768, X25519], True),
        ([], False),
        ([FFDHE8192], False),
        ([X25519, FFDHE8192], False),
        ([P256], False),
        ([X25519, P256], False),
    ],
)
def test_case_28_a_client_that_knows_the_secret_and_offers_dear_keys_is_refused_before_openssl_sees_it(
    groups: list[int], cheap: bool
) -> None:
    """The Python of the image cannot tell OpenSSL to refuse them."""
    hello = with_key_shares(plain_hello(), *groups)
    wire = with_session_id(hello, token_for(hello, KEYS, NOW))
    with contextlib.nullcontext() if cheap else pytest.raises(IdentityRefused, match="other keys than those of x25519"):
        assert check_at().examine(wire)


@given(st.binary(max_size=200))
def test_no_extensions_break_the_search_for_key_shares(rest: bytes) -> None:
    start = plain_hello()[: SESSION_ID_AT + 1]
    assert not offers_only(KeyExchange.X25519, start + rest) or b"\0\x1d" in rest
    assert not offers_only(KeyExchange.P256, start + rest) or b"\0\x17" in rest


def old_context(side: Side) -> ssl.SSLContext:
    """The TLS context of an end whose Python does not know X25519 as a curve, such as 3.11.2."""

    def set_ecdh_curve(_: ssl.SSLContext, name: str) -> None:
        raise ssl.SSLError(f"[EC: UNKNOWN_GROUP] {name}")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ssl.SSLContext, "set_groups", None, raising=False)
        patched.setattr(ssl.SSLContext, "set_ecdh_curve", set_ecdh_curve)
        return known(side=side).context


@pytest.mark.parametrize("old", [[Side.SOURCE], [Side.DESTINATION], list(Side)], ids=str)
def test_case_28_ends_whose_python_cannot_name_x25519_agree_on_it_all_the_same(old: list[Side]) -> None:
    """Before, the image's containers ended at their start."""
    contexts = {side: old_context(side) if side in old else None for side in Side}
    ends = Handshake(contexts[Side.DESTINATION], contexts[Side.SOURCE])
    assert (len(groups_of(ends.proof.hello)) > 2) is (Side.DESTINATION in old or not NAMES_X25519)
    answer = ends.server.outgoing()
    assert b"\0\x33\0\x24\0\x1d\0\x20" in answer[:200]  # a key share of X25519
    ends.finish(answer, 10_000)
    assert ends.client.handshaken
    assert ends.server.handshaken


def test_a_server_that_asks_for_other_keys_is_refused_before_openssl_makes_them() -> None:
    server = known(side=Side.SOURCE).context
    server.set_ecdh_curve("prime256v1")
    ends = Handshake(old_context(Side.DESTINATION), server)
    with pytest.raises(PeerError, match="asks for other keys"):
        ends.client.receive(ends.server.outgoing())


def test_a_client_that_offers_nothing_of_ours_costs_no_exchange_of_keys() -> None:
    """Case 21: before, a finite field of 8192 bits took a tenth of a second, with and without the secret.

    Where Python cannot name the curve, the check of the proof refuses other keys before OpenSSL sees them.
    """
    server = TlsLayer(identity(Side.SOURCE).tls.context)
    with pytest.raises(PeerError, match="no suitable" if NAMES_X25519 else "TLS"):
        server.receive(hello())


@pytest.mark.parametrize("length", [0, 31, 33, 89, 91, 2**24 - 1])
def test_case_24_a_server_hello_that_lies_about_its_length_is_the_peers_error(length: int) -> None:
    """Before, this raised OverflowError in asyncio's callback, which ended all connections inside SSH."""
    ends = Handshake()
    answer = bytearray(ends.server.outgoing())
    honest = int.from_bytes(answer[6:9], "big")
    answer[6:9] = (length if length != honest else length + 1).to_bytes(3, "big")
    with pytest.raises(PeerError):
        ends.client.receive(answer)


def test_a_clock_before_1970_makes_a_token_of_its_first_moment() -> None:
    hello = plain_hello()
    assert proof_in(with_session_id(hello, token_for(hello, KEYS, -5.0)), KEYS).time == 0
