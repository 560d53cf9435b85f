import pytest

from appliance.errors import IdentityRefused, PeerError
from appliance.settings.values import Side
from appliance.tls.engine import TlsLayer
from tests.support.tls import identity

SMALL = 10
LARGE = bytes(range(256)) * 1000


class Pair:
    """A client and a server, and the wire between them."""

    def __init__(self, client=None, server=None):
        self.client = TlsLayer((client or identity(Side.DESTINATION)).tls.context)
        self.server = TlsLayer((server or identity(Side.SOURCE)).tls.context)
        self.client.start()

    def shake_hands(self):
        while not (self.client.handshaken and self.server.handshaken):
            self.to_server()
            self.to_client()
        return self

    def to_server(self):
        return self.server.receive(self.client.outgoing())

    def to_client(self):
        return self.client.receive(self.server.outgoing())


@pytest.fixture
def pair():
    return Pair().shake_hands()


def test_plaintext_arrives_unchanged_both_ways(pair):
    pair.client.send(LARGE)
    pair.server.send(LARGE[:SMALL])
    assert (pair.to_server(), pair.to_client()) == (LARGE, LARGE[:SMALL])


def test_no_ticket_follows_the_handshake(pair):
    assert pair.server.outgoing() == b""


def test_one_direction_ends_and_the_other_goes_on(pair):
    pair.client.send(b"last")
    pair.client.send_eof()
    assert pair.to_server() == b"last"
    assert pair.server.ended
    for _ in range(3):
        pair.server.send(LARGE)
        assert pair.to_client() == LARGE
    assert not pair.client.ended
    pair.server.send_eof()
    assert pair.to_client() == b""
    assert pair.client.ended


def test_the_server_can_be_the_first_to_end(pair):
    pair.server.send_eof()
    pair.to_client()
    pair.client.send(LARGE)
    assert pair.client.ended
    assert pair.to_server() == LARGE


def test_both_directions_may_end_at_once(pair):
    pair.client.send_eof()
    pair.server.send_eof()
    assert (pair.to_server(), pair.to_client()) == (b"", b"")
    assert (pair.server.ended, pair.client.ended) == (True, True)


@pytest.mark.parametrize("cut", [1, 5, 6, 1000, 16384, 16405, 20000])
def test_ending_a_direction_loses_nothing_of_a_record_that_is_half_here(pair, cut):
    pair.server.send(LARGE)
    ciphertext = pair.server.outgoing()
    start = pair.client.receive(ciphertext[:cut])
    pair.client.send_eof()
    assert start + pair.client.receive(ciphertext[cut:]) == LARGE


def test_connections_that_take_turns_in_the_middle_of_a_record_do_not_mix(pair):
    pairs = [pair, Pair().shake_hands()]
    messages = [LARGE, LARGE[::-1]]
    for each, message in zip(pairs, messages, strict=True):
        each.client.send(message)
    ways = [each.client.outgoing() for each in pairs]
    arrived = [b"", b""]
    for start in range(0, len(ways[0]), 1000):
        for number, each in enumerate(pairs):
            arrived[number] += each.server.receive(ways[number][start : start + 1000])
    assert arrived == messages


def test_bytes_after_a_fault_do_not_reach_the_next_connection(pair):
    other = Pair().shake_hands()
    pair.client.send(LARGE)
    ciphertext = bytearray(pair.client.outgoing())
    ciphertext[100] ^= 1
    with pytest.raises(PeerError):
        pair.server.receive(ciphertext)
    other.client.send(b"payment: 1")
    assert other.to_server() == b"payment: 1"
    assert other.server.outgoing() == b""


def test_bytes_after_an_end_do_not_reach_the_next_connection(pair):
    other = Pair().shake_hands()
    pair.client.send_eof()
    assert pair.server.receive(pair.client.outgoing() + b"\x17\x03\x03\x00\x04junk") == b""
    assert pair.server.ended
    other.client.send(b"payment: 1")
    assert other.to_server() == b"payment: 1"


def test_bytes_one_by_one_are_as_good_as_all_at_once(pair):
    pair.client.send(b"one by one")
    assert b"".join(pair.server.receive(bytes([byte])) for byte in pair.client.outgoing()) == b"one by one"


@pytest.mark.parametrize(
    "stranger",
    [{"secret": "another-9fTz2kLq8wXe4vBn6mRc1yUa"}, {"ids": ("orange", "melon")}],
    ids=["another secret", "another link"],
)
def test_a_stranger_is_refused_by_an_alert(stranger):
    pair = Pair(client=identity(Side.DESTINATION, **stranger))
    pair.to_server()
    with pytest.raises(IdentityRefused):
        pair.to_client()
    with pytest.raises(IdentityRefused, match="alert"):
        pair.to_server()


def test_a_changed_byte_is_the_peers_error(pair):
    pair.client.send(b"payment: 1")
    ciphertext = bytearray(pair.client.outgoing())
    ciphertext[-1] ^= 1
    with pytest.raises(PeerError):
        pair.server.receive(bytes(ciphertext))


NO_HELLOS = [b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x10" + bytes(16), b"\x16\x03\x01\x00\x05hello"]


@pytest.mark.parametrize("hello", NO_HELLOS)
def test_bytes_that_are_no_tls_are_the_peers_error(hello):
    with pytest.raises(PeerError):
        TlsLayer(identity(Side.SOURCE).tls.context).receive(hello)
