"""Translate asyncssh's errors into the appliance's own."""

import os

import asyncssh

from appliance.errors import (
    ApplianceError,
    ForwardRefused,
    HostKeyDiffers,
    LoginRefused,
    NoSshServer,
    SshUnreachable,
    Unreachable,
)

_REASON_LENGTH_MAX = 200

_FORWARD_REFUSED = (asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, asyncssh.OPEN_UNKNOWN_CHANNEL_TYPE)


def connection_error(error: Exception | None) -> ApplianceError:
    """The error that ended an SSH connection, or kept it from being made; None is an end without a reason."""
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return HostKeyDiffers(f"SSH: {one_line(error.reason)}")
    if isinstance(error, asyncssh.PermissionDenied | asyncssh.IllegalUserName):
        return LoginRefused(f"SSH: {one_line(error.reason)}")
    if error is None or isinstance(error, asyncssh.ConnectionLost):
        return SshUnreachable("SSH connection lost: closed")
    if isinstance(error, OSError):
        reason = os.strerror(error.errno) if error.errno else one_line(str(error))
        return SshUnreachable(f"SSH connection lost: {reason.lower()}")
    return NoSshServer(f"SSH: {one_line(str(error))}")


def channel_error(error: asyncssh.ChannelOpenError, server: str) -> ApplianceError:
    """The error of an SSH server that opens no channel to ``server`` (RFC 4254, section 5.1)."""
    kind = ForwardRefused if error.code in _FORWARD_REFUSED else Unreachable
    return kind(f"{server} from the SSH server: {one_line(error.reason).lower()} ({error.code})")


def one_line(text: str) -> str:
    """``text`` of any origin, safe for one line of a log."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)[:_REASON_LENGTH_MAX]
