import errno

import asyncssh
import pytest

from appliance.errors import (
    ApplianceError,
    IdentityRefused,
    NameUnresolved,
    PeerError,
    TargetRefused,
    TimedOut,
    Unreachable,
)
from appliance.tunnel.ssh.errors import connection_error, one_line, open_failure, target_error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (asyncssh.HostKeyNotVerifiable("Host key is not trusted"), IdentityRefused),
        (asyncssh.PermissionDenied("Permission denied"), IdentityRefused),
        (asyncssh.ConnectionLost("Connection lost"), Unreachable),
        (OSError(errno.ECONNRESET, "reset"), Unreachable),
        (None, Unreachable),
        (asyncssh.KeyExchangeFailed("No matching encryption algorithm found"), PeerError),
        (asyncssh.ProtocolError("Max packet size exceeded"), PeerError),
        (asyncssh.MACError("MAC verification failed"), PeerError),
    ],
)
def test_what_ends_a_connection_says_whose_fault_it_is(error: Exception | None, kind: type[ApplianceError]) -> None:
    assert type(connection_error(error)) is kind


@pytest.mark.parametrize(
    ("error", "back"),
    [
        (TargetRefused("b0.orange.example:22 is not on the allow-list"), TargetRefused),
        (TimedOut("no answer"), Unreachable),
        (NameUnresolved("no address"), Unreachable),
        (Unreachable("connection refused"), Unreachable),
    ],
)
def test_a_refusal_reaches_the_other_end_as_what_it_is(error: ApplianceError, back: type[ApplianceError]) -> None:
    failure = open_failure(error)
    told = target_error(failure)
    assert type(told) is back
    assert str(told) == f"{error} ({failure.code})"


def test_what_an_openssh_server_forbids_is_a_refused_target() -> None:
    prohibited = asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed")
    assert isinstance(target_error(prohibited), TargetRefused)


def test_a_strangers_words_are_one_line_of_the_log() -> None:
    assert one_line("a\nb\x1b[31m" + "é" * 500) == ("a?b?[31m" + "?" * 500)[:200]
