"""The check of this VM's clock against the kernel, a file's time and the other VM."""

import ctypes
import datetime
from pathlib import Path

from appliance.clock import epoch_seconds
from appliance.doctor.step import Finding, failed, passed, warning
from appliance.tls.proof_check import TOLERANCE

AHEAD_MAX = 120.0
"""Seconds by which the settings may have been written in the future."""
SKEW_WARNING = 30.0
"""Seconds between the two VMs' clocks from which there is a warning."""
SKEW_MAX = 0.75 * TOLERANCE
"""Seconds from which it is a failure: the tunnel would soon be refused."""

NTP = "set it, and have it kept by NTP: timedatectl set-ntp true, or chrony"

_UNSYNCHRONISED = 5
_SIZE_OF_TIMEX = 256


def examine_clock(settings_file: Path) -> Finding:
    """Check the clock with the facts of this VM only.

    It fails when the settings were written in its future: a VM that has lost its time starts in the past.
    """
    now = epoch_seconds()
    time = f"{datetime.datetime.fromtimestamp(now, datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"
    settings_time = _written(settings_file)
    if settings_time - now > AHEAD_MAX:
        ahead = datetime.datetime.fromtimestamp(settings_time, datetime.UTC)
        detail = f"{time}, but {settings_file.name} was written at {ahead:%Y-%m-%d %H:%M:%S}"
        return failed(detail, f"the clock of this VM is behind: {NTP}")
    if synchronised() is False:
        return warning(f"{time}, and the kernel says it is not synchronised", f"is the clock of this VM right? {NTP}")
    return passed(time)


def judge_skew(seconds: float | None) -> Finding:
    """The finding for a difference between the two clocks; positive: the other one is ahead."""
    if seconds is None:
        return passed("both ends are authenticated")
    detail = f"both ends are authenticated; the source VM's clock is {_how_far(seconds)}"
    if abs(seconds) >= SKEW_MAX:
        return failed(detail, f"clock skew: at {TOLERANCE:.0f} s the tunnel ends; of the clock that is wrong: {NTP}")
    if abs(seconds) >= SKEW_WARNING:
        return warning(detail, f"clock skew: of the clock that is wrong: {NTP}")
    return passed(detail)


def synchronised() -> bool | None:
    """True when the kernel says that the clock is synchronised (adjtimex(2)); None where it cannot be asked."""
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_SIZE_OF_TIMEX))
    except (AttributeError, OSError):
        return None
    return None if state < 0 else bool(state != _UNSYNCHRONISED)


def _how_far(seconds: float) -> str:
    if abs(seconds) < 2:  # the other end tells whole seconds
        return "the same"
    return f"{abs(seconds):.0f} s {'ahead' if seconds > 0 else 'behind'}"


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
