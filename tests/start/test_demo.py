"""The demo as a user starts it: its results, its end, and nothing left behind."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from tests.support.processes import runs

CHECKOUT = Path(__file__).parents[2]
SECONDS = 240.0
CLUSTERS = ["orange", "grape", "lemon"]
KEYS = [
    "records",
    "bytes",
    "lost",
    "duplicated",
    "reordered",
    "altered",
    "restarts",
    "records_per_second",
    "latency_p50_ms",
    "latency_p99_ms",
    "seconds",
]


class Demo:
    """A running demo, all of whose files are below ``directory``."""

    def __init__(self, process: asyncio.subprocess.Process, directory: Path) -> None:
        self.process = process
        self._directory = directory

    async def said(self, pattern: str) -> str:
        """The next line on stderr that contains the pattern."""
        assert self.process.stderr is not None
        async with asyncio.timeout(SECONDS):
            lines = []
            while line := (await self.process.stderr.readline()).decode():
                if re.search(pattern, line):
                    return line
                lines.append(line)
        raise AssertionError(f"the demo ended without saying {pattern!r}:\n{''.join(lines)}")

    async def ended(self) -> tuple[int, str, str]:
        """The demo's exit code, and the rest of stdout and stderr."""
        async with asyncio.timeout(SECONDS):
            output, errors = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, output.decode(), errors.decode()

    def processes(self) -> list[psutil.Process]:
        """The demo's processes, including itself: all inherit its TMPDIR, or one below it."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("TMPDIR", "").startswith(str(self._directory)):
                    found.append(process)
        return found

    def files(self) -> list[Path]:
        return list(self._directory.iterdir())


@contextlib.asynccontextmanager
async def demo(directory: Path, *arguments: str, size: Sequence[str] = ("--records", "20000")) -> AsyncIterator[Demo]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "demo", *size, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(directory), "PYTHONPATH": str(CHECKOUT), "SOURCE_CLUSTER_ID": "production"},
    )
    try:
        yield Demo(process, directory)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def browsed(page: str) -> str:
    request = urllib.request.Request(page, headers={"Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory with a short name, as users have; pytest's own are too long for Spark's sockets."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


async def test_nothing_is_lost_or_doubled_by_a_kill_and_what_is_kept_runs_until_a_signal(directory):
    async with demo(directory, "--keep", "--json") as running:
        killed = await running.said(r"replicator killed with [\d,]+ of 19,600 records copied")
        line = await running.said("everything keeps running")
        (kept,) = running.files()
        assert str(kept) in line
        assert oct((kept / "setenv.sh").stat().st_mode)[-3:] == "600"
        page = (await running.said(r"the control center +http://\S+/")).split()[-1]
        assert "replicator-orange" in await asyncio.to_thread(browsed, page)
        offered = (await running.said(r"bin/appliance status .*setenv\.sh")).partition("bin/appliance ")[2].split()
        looked = await asyncio.create_subprocess_exec(sys.executable, "-m", "appliance.cli", *offered, stdout=-1)
        assert b"copied" in (await looked.communicate())[0]
        running.process.send_signal(signal.SIGINT)
        exit_code, output, errors = await running.ended()
        assert exit_code == 0, errors
        assert f"kcat -F {kept / 'orange.properties'}" in errors
        assert (running.processes(), running.files()) == ([], [])
    found = json.loads(output)
    assert list(found) == KEYS
    assert [found[key] for key in ("records", "lost", "duplicated", "reordered", "altered")] == [20_000, 0, 0, 0, 0]
    assert found["restarts"] == 1
    assert found["bytes"] > 20_000
    assert found["records_per_second"] > 0
    assert 0 < found["latency_p50_ms"] <= found["latency_p99_ms"]
    assert 0 < int(killed.split()[3].replace(",", "")) < 19_600


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGTERM, "starting two Kafka clusters"),
        pytest.param(signal.SIGHUP, "starting two Kafka clusters", marks=pytest.mark.release),
        pytest.param(signal.SIGINT, "replicator killed", marks=pytest.mark.release),
    ],
)
async def test_a_signal_at_any_moment_ends_it_and_leaves_nothing(directory, number, moment):
    async with demo(directory) as running:
        await running.said(moment)
        running.process.send_signal(number)
        exit_code, output, _ = await running.ended()
        assert exit_code == 128 + number
        assert output == ""
        assert (running.processes(), running.files()) == ([], [])


@pytest.mark.release
async def test_a_process_that_dies_is_named_with_the_end_of_its_log(directory):
    async with demo(directory) as running:
        await running.said("producing the first half")
        (victim,) = (process for process in running.processes() if runs(process, "source"))
        victim.kill()
        exit_code, output, errors = await running.ended()
        assert exit_code == 1
        assert output == ""
        assert re.search(r"^demo: appliance source ended with status -9\ndemo:     .* gateway: ready ", errors, re.M)
        assert (running.processes(), running.files()) == ([], [])


@pytest.mark.release  # the same befalls three clusters in tests/real/order
async def test_three_clusters_have_one_order_after_their_home_was_killed_and_moved_and_a_way_was_cut(directory):
    async with demo(directory, "--global", "--json", size=()) as running:
        exit_code, output, errors = await running.ended()
        assert exit_code == 0, errors
        assert (running.processes(), running.files()) == ([], [])
    found = json.loads(output)
    assert [*found["produced"]] == CLUSTERS
    assert min(found["produced"].values()) > 1000
    assert found["t_global"] == dict.fromkeys(CLUSTERS, sum(found["produced"].values()))
    assert len({tuple(chains) for chains in found["chains"].values()}) == 1
    assert [found[key] for key in ("missing", "doubled", "reordered", "altered", "foreign")] == [0] * 5
    for change in ("takeover", "return", "move", "mending"):
        assert 0 < found[f"{change}_seconds"] < found["seconds"]
