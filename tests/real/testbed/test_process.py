"""Child processes are ready in time or fail with the cause, and are never left behind."""

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.errors import ProcessFailed
from bench.lib.running import OWN_ADDRESS, free_port
from testbed.process import OwnedProcess
from tests.support.patience import PATIENCE

CHECKOUT = Path(__file__).parents[3]
IGNORES_SIGTERM = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); "
WAITS = "import time; time.sleep(600)"
HAS_A_CHILD = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {WAITS!r}]).pid, flush=True); "
HAS_A_CHILD_IN_ANOTHER_GROUP = HAS_A_CHILD.replace("])", "], process_group=0)")
OWNER = """
import asyncio, sys
from pathlib import Path
from testbed.process import OwnedProcess

async def own():
    process = await OwnedProcess.start("sleeper", ["sleep", "600"], Path(sys.argv[1]))
    print(process.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(own())
"""


async def start(tmp_path: Path, code: str) -> OwnedProcess:
    return await OwnedProcess.start("program", [sys.executable, "-c", code], tmp_path / "program.log")


def gone(pid: int) -> bool:
    """True if the process, which may not be our child, ends within ten seconds."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with open(descriptor) as file:
        return bool(select.select([file], [], [], 10)[0])


async def test_a_line_that_is_awaited_is_returned(tmp_path):
    process = await start(tmp_path, f"print('starting'); print('ready on 7', flush=True); {WAITS}")
    try:
        assert await process.wait_for_line(r"ready on \d", timeout=PATIENCE) == "ready on 7"
    finally:
        await process.kill()


async def test_a_port_that_is_awaited_accepts_connections(tmp_path):
    port = free_port(OWN_ADDRESS)
    process = await OwnedProcess.start(
        "web server", [sys.executable, "-m", "http.server", "--bind", OWN_ADDRESS, str(port)], tmp_path / "web.log"
    )
    try:
        await process.wait_for_port(OWN_ADDRESS, port, timeout=PATIENCE)
        socket.create_connection((OWN_ADDRESS, port)).close()
    finally:
        await process.stop()


async def test_a_process_that_ends_early_is_reported_at_once_with_the_tail_of_its_log(tmp_path):
    process = await start(tmp_path, "import sys; print('the cause'); sys.exit(3)")
    with pytest.raises(ProcessFailed, match="program ended with status 3\n    the cause"):
        await process.wait_for_line("never printed", timeout=60)


async def test_a_process_that_is_not_ready_in_time_is_reported_with_what_it_did_not_do(tmp_path):
    process = await start(tmp_path, WAITS)
    try:
        with pytest.raises(ProcessFailed, match=r"program did not print a line with 'ready' within 0.1 s"):
            await process.wait_for_line("ready", timeout=0.1)
    finally:
        await process.kill()


async def test_a_second_process_with_the_same_log_is_not_judged_by_the_first_ones_lines(tmp_path):
    first = await start(tmp_path, "print('ready')")
    await first.wait(timeout=PATIENCE)
    second = await start(tmp_path, WAITS)
    try:
        with pytest.raises(ProcessFailed):
            await second.wait_for_line("ready", timeout=0.1)
    finally:
        await second.kill()


async def test_a_program_that_does_not_exist_is_named(tmp_path):
    process = await OwnedProcess.start("nothing", ["no-such-program"], tmp_path / "nothing.log")
    with pytest.raises(ProcessFailed, match="no-such-program: No such file or directory"):
        await process.wait_for_line("ready", timeout=PATIENCE)


async def test_case_11_a_line_that_is_printed_between_two_reads_is_not_missed(tmp_path, monkeypatch):
    async def start_and_be_slow(*command, **options):
        process = await create_subprocess_exec(*command, **options)
        await process.wait()
        return process

    create_subprocess_exec = asyncio.create_subprocess_exec
    (tmp_path / "program.log").write_text("a predecessor's line\n")
    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_and_be_slow)
    process = await start(tmp_path, "print('at once')")
    assert await process.wait_for_line("line|at once", timeout=PATIENCE) == "at once"


async def test_stop_asks_first(tmp_path):
    code = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print('up', flush=True); "
    process = await start(tmp_path, code + "time.sleep(600)")
    await process.wait_for_line("up", timeout=PATIENCE)
    await process.stop()
    assert await process.wait(timeout=PATIENCE) == 7


async def test_stop_kills_a_process_that_is_deaf(tmp_path):
    process = await start(tmp_path, IGNORES_SIGTERM + "time.sleep(600)")
    await process.wait_for_line("deaf", timeout=PATIENCE)
    await process.stop(grace=0.1)
    assert await process.wait(timeout=PATIENCE) == -signal.SIGKILL


@pytest.mark.parametrize("parent", [HAS_A_CHILD, HAS_A_CHILD_IN_ANOTHER_GROUP], ids=["same group", "another group"])
@pytest.mark.parametrize("end", [OwnedProcess.stop, OwnedProcess.kill])
async def test_a_process_takes_its_children_along(tmp_path, end, parent):
    process = await start(tmp_path, parent + WAITS)
    child = int(await process.wait_for_line(r"^\d+$", timeout=PATIENCE))
    await end(process)
    assert await asyncio.to_thread(gone, child)


async def test_a_stop_that_is_cancelled_still_kills(tmp_path):
    process = await start(tmp_path, IGNORES_SIGTERM + "time.sleep(600)")
    await process.wait_for_line("deaf", timeout=PATIENCE)
    stopping = asyncio.create_task(process.stop(grace=600), name="stop")
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert not process.running


def test_a_process_dies_with_its_owner_even_when_that_is_killed(tmp_path):
    command = [sys.executable, "-c", OWNER, str(tmp_path / "sleeper.log")]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        sleeper = int(owner.stdout.readline())
        owner.kill()
    assert gone(sleeper)
