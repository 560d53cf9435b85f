import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import ApplianceError, NameUnresolved, PeerError, TargetRefused, TimedOut, Unreachable
from appliance.settings.target import Target, TargetPattern
from appliance.tunnel.model.connect import CONNECTED, HEAD_SIZE_MAX, STATUS, Answer, ConnectClient, ConnectServer

TARGET = Target("b0.orange.example", 9093)


def request(target="b0.orange.example:9093", method="CONNECT", headers="", rest=""):
    return f"{method} {target} HTTP/1.1\r\nHost: {target}\r\n{headers}\r\n{rest}".encode()


def test_the_server_reads_what_the_client_writes():
    assert ConnectServer().receive(ConnectClient(TARGET).request()) == TARGET


def test_the_target_of_the_status_is_a_legal_one_that_no_pattern_can_match():
    assert ConnectServer().receive(ConnectClient(STATUS).request()) == Target.parse(str(STATUS)) == STATUS
    name, _, domain = STATUS.host.rpartition(".")
    assert (name.count("."), domain) == (0, "invalid")
    with pytest.raises(ValueError, match="two labels"):
        TargetPattern.parse(f"*.{domain}:{STATUS.port}")


def test_a_request_may_come_byte_by_byte():
    server = ConnectServer()
    targets = [server.receive(bytes([byte])) for byte in request()]
    assert targets == [None] * (len(targets) - 1) + [TARGET]


@pytest.mark.parametrize(
    "error", [PeerError("odd"), TargetRefused("not on the list"), Unreachable("refused"), TimedOut("silent")]
)
def test_the_client_gets_the_error_that_the_server_had(error):
    client, server = ConnectClient(TARGET), ConnectServer()
    server.receive(client.request())
    received = client.receive(server.answer(Answer.to(error))).error()
    assert (type(received), str(error) in str(received)) == (type(error), True)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (PeerError("x"), 400),
        (TargetRefused("x"), 403),
        (Unreachable("x"), 502),
        (NameUnresolved("x"), 404),
        (TimedOut("x"), 504),
    ],
)
def test_each_error_has_its_status(error, status):
    assert Answer.to(error).status == status


@pytest.mark.parametrize("answer", [CONNECTED, Answer(502, "refused")])
def test_the_answer_tells_the_servers_time(answer):
    client, server = ConnectClient(TARGET), ConnectServer()
    server.receive(client.request())
    assert client.receive(server.answer(answer, 1_800_000_000.4)).date == 1_800_000_000


@pytest.mark.parametrize("header", [b"", b"Date: yesterday\r\n", b"Date: Sat, 21 Nov 99999 10:20:30 GMT\r\n"])
def test_a_time_that_cannot_be_read_is_none(header):
    client = ConnectClient(TARGET)
    client.request()
    answer = client.receive(b"HTTP/1.1 200 connected\r\n" + header + b"\r\n")
    assert (answer.error(), answer.date) == (None, None)


def test_bytes_behind_the_answer_are_the_targets():
    client, server = ConnectClient(TARGET), ConnectServer()
    server.receive(client.request())
    answer = client.receive(server.answer(CONNECTED) + b"hello from the broker")
    assert (answer.error(), client.first_bytes) == (None, b"hello from the broker")


def test_a_reason_of_several_lines_and_letters_stays_one_line():
    answer = Answer.to(Unreachable("one\r\nSet-Cookie: two\n€" + "x" * 1000))
    client, server = ConnectClient(TARGET), ConnectServer()
    server.receive(client.request())
    reason = client.receive(server.answer(answer)).reason
    assert reason.startswith("one??Set-Cookie: two??xx")
    assert len(reason) == 200


@pytest.mark.parametrize("target", ["127.0.0.1:9093", "10.1.2.3:22", "[::1]:9093", "[fd00:ec2::254]:80"])
def test_an_address_is_refused(target):
    with pytest.raises(TargetRefused, match="names only"):
        ConnectServer().receive(request(target))


@pytest.mark.parametrize(
    "head",
    [
        request(method="GET"),
        request(method="POST", headers="Content-Length: 3\r\n", rest="abc"),
        request(headers="Content-Length: 0\r\n"),
        request(headers="Content-Length: 5\r\n", rest="hello"),
        request(headers="Transfer-Encoding: chunked\r\n", rest="0\r\n\r\n"),
        request(headers="Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", rest="0\r\n\r\n"),
        request(rest="CONNECT other.example:9093 HTTP/1.1\r\n\r\n"),
        request(rest="bytes for the target, too early"),
        request(target="b0.orange.example"),
        request(target="b0.orange.example:0"),
        request(target="b0.orange.example:99999"),
        *(request(target=f"{address}:9093") for address in ("127.1", "2130706433", "0x7f000001")),
        request(target="http://b0.orange.example:9093/"),
        request(target="user@b0.orange.example:9093"),
        request(target="b0.orange.example:09093"),
        request(target="b0.orange.example.:9093"),
        request(target="B0.orange.example:9093"),
        request(target="[b0.orange.example]:9093"),
        request(target="b0.or\0nge.example:9093"),
        request(headers="X: one\0two\r\n"),
        request(headers="X: one\rTwo: two\r\n"),
        request(headers="X: one\r\n two\r\n"),
        request(headers="X : one\r\n"),
        request(headers="Host: b0.orange.example:9093\r\n"),
        request(headers="Upgrade: other\r\nConnection: upgrade\r\n"),
        request(headers="Expect: 100-continue\r\n"),
        request().replace(b"\r\n", b"\n"),
        request().replace(b"9093\r\n\r\n", b"9093\n\r\n"),
        request().replace(b"Host: b0", b"Host: b1"),
        request().replace(b"HTTP/1.1", b"HTTP/1.0"),
        b"\r\n" + request(),
        request() + request(),
        b"CONNECT b0.orange.example:9093 HTTP/1.1\r\n\r\n",
        b"CONNECT b0.orange.example:9093\r\n\r\n",
        request(headers=f"X-Long: {'x' * HEAD_SIZE_MAX}\r\n"),
        b"CONNECT " + b"x" * (HEAD_SIZE_MAX + 1),
    ],
)
def test_a_request_that_our_client_never_sends_is_the_peers_error(head):
    server = ConnectServer()
    with pytest.raises(PeerError) as refusal:
        server.receive(head)
    assert server.answer(Answer.to(refusal.value)).startswith(b"HTTP/1.1 400 ")


def test_a_client_that_hangs_up_without_a_request_is_not_answered():
    server = ConnectServer()
    with pytest.raises(PeerError) as refusal:
        server.receive(b"")
    assert server.answer(Answer.to(refusal.value)) == b""


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b""])
def test_an_answer_that_our_server_never_gives_is_the_peers_error(answer):
    client = ConnectClient(TARGET)
    client.request()
    with pytest.raises(PeerError):
        client.receive(answer)


@given(st.binary(max_size=200) | st.binary(max_size=100).map(lambda rest: request()[:-2] + rest))
def test_no_bytes_break_the_server(data):
    server, refusal = ConnectServer(), None
    try:
        server.receive(data)
    except ApplianceError as error:
        refusal = server.answer(Answer.to(error))
    assert refusal is None or refusal.startswith(b"HTTP/1.1 4") or not data
