"""What is said of a handshake that fails, by real handshakes in memory."""

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.errors import TlsRefused
from appliance.kafka.client.tls_refusal import refusal
from appliance.settings.target import Target
from appliance.settings.values import Side
from tests.support.authority import Authority

TARGET = Target("broker_1.example", 9093)
UNDERSCORE = "an underscore"


def server_context(folder: Path) -> ssl.SSLContext:
    leaf = Authority().leaf(Side.SOURCE)
    (folder / "pem").write_bytes(leaf.certificate + leaf.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pem")
    return context


def client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def failure(client: ssl.SSLContext, server: ssl.SSLContext) -> ssl.SSLError:
    """The client's error of a handshake between both."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=TARGET.host),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(5):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                if end is ends[0]:
                    return error
    raise AssertionError("the handshake has not failed")


def older_server(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    client.minimum_version = ssl.TLSVersion.TLSv1_3
    server.maximum_version = ssl.TLSVersion.TLSv1_2


def no_common_cipher(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    client.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    server.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")


@pytest.mark.parametrize(
    ("differ", "alert"), [(older_server, "protocol version"), (no_common_cipher, "handshake failure")]
)
def test_case_1492_an_alert_of_another_cause_is_not_blamed_on_the_name(
    tmp_path: Path, differ: Callable[[ssl.SSLContext, ssl.SSLContext], None], alert: str
) -> None:
    # Each alert of a broker whose name has an underscore was that name's.
    client, server = client_context(), server_context(tmp_path)
    differ(client, server)
    error = refusal(TARGET, failure(client, server))
    assert isinstance(error, TlsRefused)
    assert str(error).endswith(f"ends the handshake with the alert {alert}")


def test_case_1492_the_alert_that_java_sends_for_such_a_name_is(tmp_path: Path) -> None:
    def refuse(*_: object) -> int:
        return ssl.AlertDescription.ALERT_DESCRIPTION_ILLEGAL_PARAMETER  # that of Java 17 and 25

    server = server_context(tmp_path)
    server.sni_callback = refuse
    error = failure(client_context(), server)
    assert UNDERSCORE in str(refusal(TARGET, error))
    assert UNDERSCORE not in str(refusal(Target("broker-1.example", 9093), error))


def test_case_1492_a_broker_with_older_tls_is_not_said_to_speak_none(tmp_path: Path) -> None:
    # "does not speak TLS on this port: UNSUPPORTED_PROTOCOL"
    client, server = client_context(), server_context(tmp_path)
    hello = ssl.MemoryBIO()
    # A server's answer in TLS 1.2 to a client that offered it, read by a client that does not.
    older, to_server, to_client = client_context(), ssl.MemoryBIO(), ssl.MemoryBIO()
    older.maximum_version = server.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLWantReadError):
        older.wrap_bio(hello, to_server).do_handshake()
    with pytest.raises(ssl.SSLWantReadError):
        server.wrap_bio(to_server, to_client, server_side=True).do_handshake()
    client.minimum_version = ssl.TLSVersion.TLSv1_3
    strict = client.wrap_bio(to_client, ssl.MemoryBIO())
    with pytest.raises(ssl.SSLError) as failed:
        strict.do_handshake()
    assert failed.value.reason == "UNSUPPORTED_PROTOCOL"
    assert isinstance(refusal(TARGET, failed.value), TlsRefused)


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x0a\0\0\0\0\0\0\0\0\0\0", b"SSH-2.0-x\r\n"]
)
def test_what_is_no_tls_is_said_to_be_none(answer: bytes) -> None:
    incoming = ssl.MemoryBIO()
    incoming.write(answer)
    with pytest.raises(ssl.SSLError) as failed:
        client_context().wrap_bio(incoming, ssl.MemoryBIO()).do_handshake()
    assert "does not speak TLS on this port" in str(refusal(TARGET, failed.value))
