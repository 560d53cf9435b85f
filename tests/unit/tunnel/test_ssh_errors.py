import errno

import asyncssh
import pytest

from appliance.errors import (
    ApplianceError,
    ForwardRefused,
    HostKeyDiffers,
    LoginRefused,
    NoSshServer,
    SshUnreachable,
    Unreachable,
)
from appliance.tunnel.ssh.options import channel_error, connection_error, one_line


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (asyncssh.HostKeyNotVerifiable("Host key is not trusted"), HostKeyDiffers),
        (asyncssh.PermissionDenied("Permission denied"), LoginRefused),
        (asyncssh.ConnectionLost("Connection lost"), SshUnreachable),
        (OSError(errno.ECONNRESET, "reset"), SshUnreachable),
        (None, SshUnreachable),
        (asyncssh.KeyExchangeFailed("No matching encryption algorithm found"), NoSshServer),
        (asyncssh.ProtocolError("Max packet size exceeded"), NoSshServer),
        (asyncssh.MACError("MAC verification failed"), NoSshServer),
    ],
)
def test_the_error_that_ends_a_connection_shows_whose_fault_it_is(
    error: Exception | None, kind: type[ApplianceError]
) -> None:
    assert type(connection_error(error)) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, ForwardRefused),
        (asyncssh.OPEN_UNKNOWN_CHANNEL_TYPE, ForwardRefused),
        (asyncssh.OPEN_CONNECT_FAILED, Unreachable),
        (asyncssh.OPEN_RESOURCE_SHORTAGE, Unreachable),
    ],
)
def test_a_forbidden_forward_is_distinguished_from_one_that_fails(code: int, kind: type[ApplianceError]) -> None:
    told = channel_error(asyncssh.ChannelOpenError(code, "Open failed"), "10.1.0.2:15060")
    assert type(told) is kind
    assert str(told) == f"10.1.0.2:15060 from the SSH server: open failed ({code})"


def test_a_strangers_words_are_one_line_of_the_log() -> None:
    assert one_line("a\nb\x1b[31m" + "é" * 500) == ("a?b?[31m" + "?" * 500)[:200]
