"""What asyncssh says, in the appliance's own words; and a refused target's words on the way back.

error                 open failure (RFC 4254, section 5.1)     and back
TargetRefused         administratively prohibited              TargetRefused
TimedOut, Unreachable connect failed                           Unreachable
too many              resource shortage                        Unreachable
"""

import os

import asyncssh

from appliance.errors import ApplianceError, IdentityRefused, PeerError, TargetRefused, Unreachable

_REASON_LENGTH_MAX = 200

_IDENTITY = (asyncssh.HostKeyNotVerifiable, asyncssh.PermissionDenied, asyncssh.IllegalUserName)

_REFUSED_CODES = (asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, asyncssh.OPEN_UNKNOWN_CHANNEL_TYPE)


def connection_error(error: Exception | None) -> ApplianceError:
    """What ended an SSH connection, or kept it from standing; None is a regular end, which nobody here expects."""
    if isinstance(error, _IDENTITY):
        return IdentityRefused(f"SSH: {one_line(error.reason)}")
    if error is None or isinstance(error, asyncssh.ConnectionLost):
        return Unreachable("connection lost: closed")
    if isinstance(error, OSError):
        return Unreachable(f"connection lost: {os.strerror(error.errno) if error.errno else one_line(str(error))}")
    return PeerError(f"SSH: {one_line(str(error))}")


def open_failure(error: ApplianceError) -> asyncssh.ChannelOpenError:
    """What tells the peer of ``error`` instead of a channel."""
    refused = isinstance(error, TargetRefused)
    code = asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED if refused else asyncssh.OPEN_CONNECT_FAILED
    return asyncssh.ChannelOpenError(code, one_line(str(error)))


def target_error(error: asyncssh.ChannelOpenError) -> ApplianceError:
    """What the server means by opening no channel."""
    kind = TargetRefused if error.code in _REFUSED_CODES else Unreachable
    return kind(f"{one_line(error.reason)} ({error.code})")


def one_line(text: str) -> str:
    """``text`` as a log can show it, whoever wrote it."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)[:_REASON_LENGTH_MAX]
