"""The finding for each reason why a tunnel's port is not reached."""

import errno
from collections.abc import Mapping

import pytest

from appliance.doctor.step import Verdict
from appliance.doctor.tunnel import TunnelChecks
from appliance.errors import ApplianceError, NameUnresolved, PeerError, TimedOut, Unreachable
from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tunnel.probe import Asked
from tests.support.tunnel import HOST, tunnel_settings

SETTINGS = tunnel_settings(Target(HOST, 9093), port=15060)


class Probe:
    """A connection that fails at its first step, or gives a scripted answer."""

    def __init__(self, error: ApplianceError | None = None, asked: Asked | None = None) -> None:
        self._error = error
        self._asked = asked

    async def dial(self) -> None:
        if self._error:
            raise self._error

    async def greet(self) -> None: ...

    async def ask(self, target: Target) -> Asked:
        assert self._asked
        assert target in SETTINGS.allowed.exact
        return self._asked

    async def skew(self) -> float | None:
        return None

    def days_left(self) -> Mapping[Side, float]:
        return {}

    async def close(self) -> None: ...


def unreachable(number: int) -> Unreachable:
    error = Unreachable("no luck")
    error.__cause__ = OSError(number, "no luck")
    return error


@pytest.mark.parametrize(
    ("error", "kind", "named"),
    [
        (unreachable(errno.ECONNREFUSED), "closed", "TUNNEL_PORT=15060"),
        (TimedOut("silence"), "filtered", "DESTINATION_SIDE_TUNNEL_IP=127.0.0.1"),
        (unreachable(errno.ENETUNREACH), "no way there", "SOURCE_SIDE_TUNNEL_IP"),
        (unreachable(errno.EHOSTUNREACH), "no way there", "firewall"),
        (NameUnresolved("no address"), "no way there", "SOURCE_SIDE_TUNNEL_IP"),
    ],
)
async def test_each_way_not_to_reach_the_port_is_told_apart(error: ApplianceError, kind: str, named: str) -> None:
    found = await TunnelChecks(SETTINGS, Probe(error), Side.DESTINATION).port()
    assert (found.verdict, found.remedy.partition(":")[0]) == (Verdict.FAILED, kind)
    assert named in found.remedy


async def test_a_server_that_answers_otherwise_is_of_another_version() -> None:
    trial = TunnelChecks(SETTINGS, Probe(asked=Asked(PeerError("no CONNECT request (400)"))), Side.DESTINATION)
    assert (await trial.port()).verdict is Verdict.PASSED
    assert "same version" in (await trial.identity()).remedy


async def test_a_target_that_is_not_reached_is_no_matter_of_trust() -> None:
    trial = TunnelChecks(SETTINGS, Probe(asked=Asked(Unreachable("refused (502)"), 0.0)), Side.DESTINATION)
    assert (await trial.identity()).verdict is Verdict.PASSED
    with pytest.raises(Unreachable):
        await trial.remote_dial(Target(HOST, 9093))
