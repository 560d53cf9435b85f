"""The order of events: producers write in all clusters while the home dies, comes back and moves, and a way is cut.

::

    all order -> SIGKILL of the home's VM, another cluster takes over -> the old home comes back -> the home moves
    -> lemon is cut off, and catches up -> the producers end -> all T-global are read and compared
"""

import asyncio
import functools
import itertools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from appliance.errors import ApplianceError, ProcessFailed
from demo.arrivals import Arrivals, follow
from demo.display import Display
from demo.order_producing import Writing
from demo.order_report import Change, OrderReport
from demo.order_setenv import ORDERED
from demo.order_verification import OrderCheck, verify_order
from demo.running_order import RunningOrder
from testbed.tasks import end, in_thread, watched

_PATIENCE = 60.0
_CHECK_SECONDS = 0.05
_CUT_SECONDS = 5.0
_THREADS = 16
_SOME = 300
"""The number of records after which something is seen to go on."""


class OrderScenario:
    """One run on an order that has not been started.

    Args:
        order: the order, not yet started.
        display: shows what happens.
    """

    def __init__(self, order: RunningOrder, display: Display) -> None:
        self._order = order
        self._display = display
        self._writing = Writing()
        self._arrivals = {name: Arrivals() for name in order.clusters}
        self._changes: list[Change] = []

    async def run(self) -> OrderReport:
        """Run the scenario.

        Raises:
            ApplianceError: it could not run to its end.
        """
        begin = time.monotonic()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))  # clients block six of them
        with self._display.step("starting three Kafka clusters: orange, grape, lemon"):
            await self._order.start_clusters()
        with self._display.step("starting the three processes of each cluster's VM"):
            await self._order.start_vms()
        try:
            check = await watched(self._play(), self._order.watch())
        except ApplianceError:
            self._order.require_running()  # a process that has ended says more
            raise
        return OrderReport(self._writing.written, check, self._changes, time.monotonic() - begin)

    async def _play(self) -> OrderCheck:
        clients = {name: self._order.client(name) for name in self._order.clusters}
        following = [
            functools.partial(follow, client, [ORDERED], self._arrivals[name]) for name, client in clients.items()
        ]
        producing = [functools.partial(self._writing.write, name, client) for name, client in clients.items()]
        threads = [asyncio.create_task(in_thread(work), name="client") for work in (*following, *producing)]
        try:
            await watched(self._change_all(), _failure_of_any(threads))
            with self._display.step("ending the producers: until all T-global have all records"):
                self._writing.end.set()
                await asyncio.gather(*threads[len(following) :])
                await self._until(lambda: self._ranks() == {sum(self._writing.written.values())}, "show all records")
        finally:
            await asyncio.gather(*map(end, threads))
        with self._display.step("reading all T-global and each T again, and comparing"):
            return await verify_order(clients)

    async def _change_all(self) -> None:
        with self._display.step("producing in all clusters: until all T-global grow"):
            await self._grown(*self._order.clusters)
        self._say_ranks()
        await self._lose_the_home()
        await self._bring_it_back()
        await self._move("orange")
        await self._cut("lemon")

    async def _lose_the_home(self) -> None:
        lost = "orange"
        others = [name for name in self._order.clusters if name != lost]
        with self._display.step("SIGKILL to all processes of orange's VM, the home: until another cluster is home"):
            begin = time.monotonic()
            await self._order.vms[lost].close()
            homes = ", ".join(sorted(await self._other_homes(others[0], lost)))
            await self._grown(*others)
        seconds = max(self._pause_after(name, begin) for name in others)
        self._say(Change("takeover", f"the home is lost; {homes} is home, and T-global goes on after", seconds))

    async def _bring_it_back(self) -> None:
        with self._display.step("starting orange's VM again: until it has caught up"):
            begin = time.monotonic()
            await self._order.start_vm("orange")
            await self._caught_up("orange")
        self._say(Change("return", "the old home is back, and has caught up after", time.monotonic() - begin))

    async def _move(self, to: str) -> None:
        with self._display.step(f"bin/appliance order move --to {to}"):
            begin = time.monotonic()
            await self._order.command("grape", "move", "--to", to)
            await self._grown(*self._order.clusters)
        pause = max(self._pause_after(name, begin) for name in self._order.clusters)
        self._say(Change("move", f"the home moves to {to} by command, T-global goes on after", pause))

    async def _cut(self, name: str) -> None:
        others = [other for other in self._order.clusters if other != name]
        with self._display.step(f"cutting the way from {name} to the others, which go on"):
            await self._order.vms[name].cut_off()
            await asyncio.sleep(_CUT_SECONDS)
            await self._grown(*others)
            behind = max(self._arrivals[other].count for other in others) - self._arrivals[name].count
        with self._display.step(f"mending it: {name} lacks {behind:,} records"):
            begin = time.monotonic()
            await self._order.vms[name].mend()
            await self._caught_up(name)
        self._say(
            Change("mending", f"the way from {name} is mended, and it has caught up after", time.monotonic() - begin)
        )

    async def _grown(self, *names: str) -> None:
        """Wait until these T-global have some more records than now."""
        wanted = {name: self._arrivals[name].count + _SOME for name in names}
        await self._until(lambda: all(self._arrivals[name].count >= least for name, least in wanted.items()), "grow")

    async def _caught_up(self, name: str) -> None:
        """Wait until a T-global has what the longest other one has now."""
        wanted = max(arrivals.count for arrivals in self._arrivals.values())
        await self._until(lambda: self._arrivals[name].count >= wanted, f"catch up in {name}")

    async def _other_homes(self, own: str, lost: str) -> set[str]:
        """Wait until a VM sees open homes, and not the lost one among them; the homes."""
        deadline = time.monotonic() + _PATIENCE
        while not (homes := await self._order.homes(own)) or lost in homes:
            if time.monotonic() > deadline:
                raise self._order.vms[own].replicator.failure(f"saw no other home within {_PATIENCE:g} s")
            await asyncio.sleep(_CHECK_SECONDS)
        return homes

    async def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                counts = {name: arrivals.count for name, arrivals in self._arrivals.items()}
                raise ProcessFailed(f"the order did not {what} within {_PATIENCE:g} s: T-global have {counts}")
            await asyncio.sleep(_CHECK_SECONDS)

    def _ranks(self) -> set[int]:
        return {arrivals.count for arrivals in self._arrivals.values()}

    def _pause_after(self, name: str, begin: float) -> float:
        """The longest time without a new record in a T-global since ``begin``."""
        times = [begin, *(at for at, _ in [*self._arrivals[name].samples] if at > begin)]
        return max(after - before for before, after in itertools.pairwise(times))

    def _say(self, change: Change) -> None:
        self._changes.append(change)
        self._display.say(f"  {change.what}: {change.seconds:.1f} s")
        self._say_ranks()

    def _say_ranks(self) -> None:
        counts = ", ".join(f"{name} {arrivals.count:,}" for name, arrivals in self._arrivals.items())
        self._display.say(f"  records in T-global: {counts}")


async def _failure_of_any(tasks: Sequence["asyncio.Task[None]"]) -> None:
    """Wait until all have ended or one has failed, and raise its failure."""
    ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    for task in ended:
        task.result()
