"""Two source VMs and two destination VMs: each pair carries, and what happens to one source VM costs a reconnect.

A producer on each destination VM writes all the time through its own end of the tunnel, and must get an acknowledgement
of each record. The longest pause is printed.
"""

import contextlib
import getpass
import itertools
import os
import secrets
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace

import pytest

from testbed.process import OwnedProcess
from tests.networks.clients import Kcat, through_tunnel
from tests.networks.clusters import STEADY
from tests.networks.topology import (
    DESTINATION_SIDE_TUNNEL_IP,
    OTHER_DESTINATION_SIDE_TUNNEL_IP,
    OTHER_SOURCE_SIDE_TUNNEL_IP,
    SOURCE_SIDE_TUNNEL_IP,
    TUNNEL_PORT,
)
from tests.networks.tunnel import Tunnel
from tests.networks.vpcs import READY_SECONDS, Vpcs
from tests.support.namespace import Namespace
from tests.support.openssh import configured
from tests.support.ssh import write_keys

pytestmark = pytest.mark.asyncio(loop_scope="session")

SOURCES = (SOURCE_SIDE_TUNNEL_IP, OTHER_SOURCE_SIDE_TUNNEL_IP)
LISTS = {
    "SOURCE_SIDE_TUNNEL_IP": ",".join(SOURCES),
    "DESTINATION_SIDE_TUNNEL_IP": f"{DESTINATION_SIDE_TUNNEL_IP},{OTHER_DESTINATION_SIDE_TUNNEL_IP}",
}


@dataclass
class FourVms:
    """The processes of four VMs, and a producer on each destination VM."""

    vpcs: Vpcs
    changed: dict[str, str]
    sources: list[OwnedProcess]
    destinations: list[OwnedProcess]
    producers: list[OwnedProcess]
    judged: list[int] = field(default_factory=lambda: [0, 0])

    async def change(self, number: int, command: str, **changed: str) -> list[float]:
        """Stop one VM's end, start it with other settings, and return the longest pauses of that."""
        processes = self.sources if command == "source" else self.destinations
        vms = self.vpcs.machines.source_vms if command == "source" else self.vpcs.machines.destination_vms
        await processes[number].stop()
        processes[number] = await self.vpcs.start_appliance(vms[number], command, **self.changed | changed)
        await processes[number].wait_for_line(r"\bready\b", READY_SECONDS)
        return await self.longest_pauses()

    async def source_again(self, number: int) -> None:
        """Start one source VM's end once more, and wait until both destination VMs know that it is well."""
        vm = self.vpcs.machines.source_vms[number]
        before = [self._reached_again(each, number) for each in self.destinations]
        self.sources[number] = await self.vpcs.start_appliance(vm, "source", **self.changed)
        await self.sources[number].wait_for_line(r"\bready\b", READY_SECONDS)
        for each, lines in zip(self.destinations, before, strict=True):
            await each.wait_until(lambda e=each, n=lines: self._is_back(e, number, n), READY_SECONDS, "reach it again")

    async def _is_back(self, destination: OwnedProcess, number: int, before: int) -> bool:
        return self._reached_again(destination, number) > before

    def _reached_again(self, destination: OwnedProcess, number: int) -> int:
        lines = destination.log_file.read_text().splitlines()
        return len([line for line in lines if "tunnel server reached again" in line and SOURCES[number] in line])

    async def longest_pauses(self) -> list[float]:
        """The longest time between two acknowledgements of each producer since the last call, once each has more."""
        for producer in self.producers:
            before = len(_times(producer))
            await producer.wait_until(lambda p=producer, n=before: _has_more(p, n), READY_SECONDS, "write on")
        times = [_times(producer) for producer in self.producers]
        windows = [each[max(begin - 1, 0) :] for begin, each in zip(self.judged, times, strict=True)]
        self.judged = [len(each) for each in times]
        return [round(max(later - one for one, later in itertools.pairwise(each)), 2) for each in windows]

    async def all_written(self) -> int:
        """End the producers, each of which must have an acknowledgement of each record; their number."""
        written = 0
        for producer in self.producers:
            os.killpg(producer.pid, signal.SIGTERM)
            verdict = await _last_line(producer)
            assert verdict.startswith("all ")
            written += int(verdict.split()[-1])
        return written


async def _last_line(producer: OwnedProcess) -> str:
    await producer.wait(READY_SECONDS)
    return producer.log_file.read_text().splitlines()[-1]


async def _has_more(producer: OwnedProcess, before: int) -> bool:
    return len(_times(producer)) > before + 5


def _times(producer: OwnedProcess) -> list[float]:
    lines = [line.split() for line in producer.log_file.read_text().splitlines()]
    return [float(line[2]) for line in lines if len(line) == 3 and line[0] == "delivered"]


@contextlib.asynccontextmanager
async def four_vms(tunnel: Tunnel, **changed: str) -> AsyncIterator[FourVms]:
    """The tunnel's ends on four VMs, in place of the two others, with the printed firewall rules of all pairs."""
    vpcs, changed = tunnel.vpcs, LISTS | changed
    machines = vpcs.machines
    vpcs.open_firewall(**changed)
    async with contextlib.AsyncExitStack() as undo:
        undo.callback(vpcs.open_firewall)
        await undo.enter_async_context(tunnel.stopped())
        running = FourVms(vpcs, changed, [], [], [])
        for command, vms, found in (
            ("source", machines.source_vms, running.sources),
            ("destination", machines.destination_vms, running.destinations),
        ):
            for vm in vms:
                found.append(await vpcs.start_appliance(vm, command, **changed))
                await found[-1].wait_for_line(r"\bready\b", READY_SECONDS)
        undo.push_async_callback(_stop, running)
        for number, vm in enumerate(machines.destination_vms):
            access = replace(through_tunnel(vpcs), machine=vm)
            program = ("tests.networks.programs.steady", access.file(access.librdkafka()), STEADY, f"vm{number}")
            running.producers.append(await vpcs.start(vm, f"steady-{len(changed)}-{number}", *program))
            await running.producers[-1].wait_for_line("^delivered", READY_SECONDS)
        yield running


async def _stop(running: FourVms) -> None:
    for process in (*running.producers, *running.destinations, *running.sources):
        await process.kill()


@contextlib.contextmanager
def without_power(vm: Namespace, *processes: OwnedProcess) -> Iterator[None]:
    """A VM that is gone without a word: its network first, so that no reset leaves it, then its processes."""
    for interface in ("link", "vpc"):
        vm.ip("link", "set", "dev", interface, "down")
    for process in processes:
        os.killpg(process.pid, signal.SIGKILL)
    try:
        yield
    finally:
        for interface in ("link", "vpc"):
            vm.ip("link", "set", "dev", interface, "up")


async def test_a_source_vm_that_is_stopped_silent_or_without_power_costs_a_reconnect_through_the_other(
    tunnel: Tunnel, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses = {}
    async with four_vms(tunnel) as vms:
        pauses["none"] = await vms.longest_pauses()
        os.killpg(vms.sources[0].pid, signal.SIGTERM)
        await vms.sources[0].wait(READY_SECONDS)
        pauses["stopped"] = await vms.longest_pauses()
        await vms.source_again(0)
        os.killpg(vms.sources[1].pid, signal.SIGTERM)
        await vms.sources[1].wait(READY_SECONDS)
        pauses["the other stopped"] = await vms.longest_pauses()
        await vms.source_again(1)
        os.killpg(vms.sources[0].pid, signal.SIGSTOP)
        for destination in vms.destinations:
            await destination.wait_for_line("connections ended, to go on through another source VM.*silent", 60)
        pauses["silent"] = await vms.longest_pauses()
        os.killpg(vms.sources[0].pid, signal.SIGCONT)
        with without_power(vms.vpcs.machines.other_source_vm, vms.sources[1]):
            for destination in vms.destinations:
                await destination.wait_for_line(f"connections ended.*{SOURCES[1]}", 60)
            pauses["without power"] = await vms.longest_pauses()
        await vms.source_again(1)
        written = await vms.all_written()
        assert len(Kcat(through_tunnel(vms.vpcs)).everything(STEADY)) == written
    with capsys.disabled():
        print(f"\n{written} records; the longest pause of both producers by each, in seconds: {pauses}")


@pytest.mark.release
async def test_the_secret_is_changed_on_one_vm_after_the_other_while_producers_write(
    tunnel: Tunnel, capsys: pytest.CaptureFixture[str]
) -> None:
    new, pauses = secrets.token_urlsafe(33), {}
    both = {"SHARED_SECRET": new, "SHARED_SECRET_PREVIOUS": tunnel.vpcs.secret}
    async with four_vms(tunnel) as vms:
        for command, changed in (
            ("destination", both),
            ("source", {"SHARED_SECRET": new}),
            ("destination", {"SHARED_SECRET": new}),
        ):
            for number in (1, 0):
                pauses[f"{len(pauses) + 1}: {command}"] = await vms.change(number, command, **changed)
        written = await vms.all_written()
    with capsys.disabled():
        print(f"\n{written} records; the longest pause of both producers by each step, in seconds: {pauses}")


@pytest.mark.release
async def test_each_source_vms_own_sshd_carries_and_one_without_power_costs_a_reconnect(
    tunnel: Tunnel, capsys: pytest.CaptureFixture[str]
) -> None:
    vpcs, of_one = tunnel.vpcs, tunnel.vpcs.directory / "sshd-of-one"
    files = write_keys(of_one)
    changed = {
        "TUNNEL_SSH": ",".join(f"{getpass.getuser()}@{address}:22" for address in SOURCES),
        "TUNNEL_SSH_KEY_FILE": str(files.key),
        "TUNNEL_SSH_HOST_KEYS_FILE": str(files.host_keys),
    }
    async with contextlib.AsyncExitStack() as undo:
        sshds = []
        for vm, address in zip(vpcs.machines.source_vms, SOURCES, strict=True):
            directory = shutil.copytree(of_one, vpcs.directory / f"two-{address}")
            command = configured(directory, address, 22, f"PermitOpen 127.0.0.1:{TUNNEL_PORT}")
            sshds.append(await vpcs.start_command(vm, f"sshd-of-two-{address}", *command))
            undo.push_async_callback(sshds[-1].kill)
            await sshds[-1].wait_for_line("Server listening", READY_SECONDS)
        vms = await undo.enter_async_context(four_vms(tunnel, **changed))
        with without_power(vpcs.machines.source_vm, sshds[0], vms.sources[0]):
            for destination in vms.destinations:
                await destination.wait_for_line(f"connections ended.*{SOURCES[0]}", 60)
            pauses = await vms.longest_pauses()
            written = await vms.all_written()
    with capsys.disabled():
        print(f"\n{written} records inside SSH; the longest pause of both producers in seconds: {pauses}")
