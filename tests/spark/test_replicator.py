"""The replicator as a user runs it, through shim and tunnel, with a user's possible mistakes."""

import asyncio
import ipaddress
import os
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from appliance.link.model.naming import REGISTRY
from bench.lib.running import OWN_ADDRESS
from testbed.cluster import Cluster
from testbed.process import OwnedProcess
from tests.support.disclosure import disclosing
from tests.support.link import Link, ended_by, lines, shown_by
from tests.support.patience import PATIENCE
from tests.support.processes import family, peers, runs
from tests.support.rows import read_rows, until_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

POSITIONS = "replicator-orange.positions"
OFFSETS = "replicator-orange.offsets"
DAEMON = "appliance.driver.daemon"


@pytest.fixture
def orders(shared: Link) -> Link:
    """A new link with one source topic, ``orders``."""
    shared.clear()
    shared.make_topic(shared.orange, "orders", 2)
    return shared


async def until_copied(on: Link, topic: str, count: int, partition: int = 0) -> None:
    await until_rows(on.grape, f"{topic}.copy", count, partition)


async def copied(cluster: Cluster, topic: str, partition: int = 0) -> int:
    return len(await asyncio.to_thread(read_rows, cluster, topic, partition))


def tasks(replicator: OwnedProcess) -> set[psutil.Process]:
    """The Python processes that copy: forks of a daemon."""
    daemons = [process for process in family(replicator.pid) if runs(process, DAEMON)]
    return {worker for daemon in daemons for worker in daemon.children()}


async def test_the_source_is_reached_through_shim_and_tunnel_and_no_other_way(orders: Link) -> None:
    orders.produce("orders", 100)
    async with orders.running("source") as source, orders.running("replicate") as replicator:
        await source.wait_for_line("ready", PATIENCE)
        async with orders.running("destination") as destination:
            await destination.wait_for_line("ready", PATIENCE)
            await until_copied(orders, "orders", 100)
            endpoints = ipaddress.IPv4Network("127.64.0.0/10")
            home = {ipaddress.IPv4Address(address) for address in ("127.0.0.1", "127.0.5.1", OWN_ADDRESS)}
            met = peers(family(replicator.pid))
            assert any(address in endpoints for address in met)
            assert {address for address in met if address not in endpoints} <= home
        orders.produce("orders", 50)
        await replicator.wait_for_line("appliance destination", PATIENCE)
        await asyncio.sleep(2)
        assert await copied(orders.grape, "orders.copy") == 100
        async with orders.running("destination"):
            await until_copied(orders, "orders", 150)
    assert read_rows(orders.orange, "orders", 0) == read_rows(orders.grape, "orders.copy", 0)


async def test_a_killed_replicator_goes_on_where_it_was_and_a_terminated_one_ends_its_job(orders: Link) -> None:
    orders.produce("orders", 1000)
    async with orders.tunnel():
        async with orders.running("replicate", LOG_LEVEL="debug") as replicator:
            await until_copied(orders, "orders", 1)
            shown = shown_by(replicator)
            assert not [secret for secret in orders.secrets if secret in shown]
            assert not disclosing(orders.directory, orders.secrets)
        orders.produce("orders", 1000)
        async with orders.running("replicate") as replicator:
            await until_copied(orders, "orders", 2000)
            psutil.Process(replicator.pid).send_signal(signal.SIGTERM)
            assert await replicator.wait(PATIENCE) == 0
            assert not [line for line in lines(replicator) if "did not end in time" in line]
            # Case 5: before, PySpark logged a stack trace when its JVM had ended; case 50: and idle Python processes,
            # too.
            assert not [line for line in lines(replicator) if "Traceback" in line or " ERROR " in line]
    assert read_rows(orders.orange, "orders", 0) == read_rows(orders.grape, "orders.copy", 0)


@pytest.mark.release  # held by tests/real/engine/test_bounded.py
async def test_a_bound_that_is_changed_in_the_settings_holds_without_a_restart_and_status_shows_it(
    orders: Link,
) -> None:
    for _ in range(3):
        orders.produce("orders", 2000, value=b"x" * 1000)
    async with orders.tunnel(), orders.running("replicate", MAX_BYTES_PER_SECOND="1") as replicator:
        await until_copied(orders, "orders", 1)
        assert await copied(orders.grape, "orders.copy") < 6000
        async with orders.running("status", "--json", MAX_BYTES_PER_SECOND="1") as status:
            await status.wait_for_line('"max_bytes_per_second": 1,', PATIENCE)
        settings = orders.directory / f"{replicator.name}.sh"
        settings.write_text(settings.read_text().replace("MAX_BYTES_PER_SECOND=1\n", "MAX_BYTES_PER_SECOND=0\n"))
        await replicator.wait_for_line("bound changed bytes_per_second=0", PATIENCE)
        await until_copied(orders, "orders", 6000)
    assert read_rows(orders.orange, "orders", 0) == read_rows(orders.grape, "orders.copy", 0)


def mount(volume: Path, text: str) -> Path:
    """A settings file as Kubernetes mounts a Secret: a change makes a new folder, moves a link to it, and removes the
    old one."""
    folder, link, new_link = volume / f"..{time.monotonic_ns()}", volume / "..data", volume / "..data_tmp"
    old = link.resolve()
    folder.mkdir()
    (folder / "setenv.sh").write_text(text)
    (folder / "setenv.sh").chmod(0o400)
    new_link.symlink_to(folder.name)
    new_link.replace(link)
    if old != link:
        shutil.rmtree(old)
    file = volume / "setenv.sh"
    if not file.is_symlink():
        file.symlink_to("..data/setenv.sh")
    return file


async def test_case_1390_tasks_find_the_settings_after_kubernetes_has_replaced_them(
    orders: Link, tmp_path: Path
) -> None:
    """Before, a task that started after any change of the Secret looked for the folder that was mounted at first."""
    text = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in orders.variables().items())
    program = [sys.executable, "-m", "appliance.cli", "replicate", "--env-file", str(mount(tmp_path, text))]
    orders.produce("orders", 10)
    async with orders.tunnel():
        replicator = await OwnedProcess.start("mounted", program, tmp_path / "log", {**os.environ, "TMPDIR": "/tmp"})
        try:
            await until_copied(orders, "orders", 10)
            mount(tmp_path, text + "export MAX_BYTES_PER_SECOND='1000000000'\n")
            for worker in tasks(replicator):
                worker.kill()
            orders.produce("orders", 10)
            await until_copied(orders, "orders", 20)
            await replicator.wait_for_line("bound changed bytes_per_second=1000000000", PATIENCE)
        finally:
            await replicator.kill()


@pytest.mark.parametrize("wrong_end", ["source", pytest.param("destination", marks=pytest.mark.release)])
async def test_a_wrong_secret_at_one_end_is_named_at_both_and_nothing_is_written(orders: Link, wrong_end: str) -> None:
    wrong = {"SHARED_SECRET": "another-" + orders.secret}
    async with (
        orders.running("source", **(wrong if wrong_end == "source" else {})) as source,
        orders.running("destination", **(wrong if wrong_end == "destination" else {})) as destination,
    ):
        await source.wait_for_line("ready", PATIENCE)
        await destination.wait_for_line("ready", PATIENCE)
        async with orders.running("replicate") as replicator:
            line = await replicator.wait_for_line("no broker of the source cluster answers", PATIENCE)
            assert "appliance destination" in line
            assert "SHARED_SECRET" in await destination.wait_for_line("SHARED_SECRET", PATIENCE)
            assert "SHARED_SECRET" in await source.wait_for_line("SHARED_SECRET", PATIENCE)
    assert orders.topics(orders.grape) == set()


@pytest.mark.parametrize("side", ["SOURCE", pytest.param("DESTINATION", marks=pytest.mark.release)])
async def test_a_wrong_api_key_ends_it_with_one_line_and_nothing_is_written(orders: Link, side: str) -> None:
    async with orders.tunnel(), orders.running("replicate", **{f"{side}_API_SECRET": "wrong"}) as replicator:
        assert await replicator.wait(PATIENCE) == 1
    line = ended_by(replicator)
    assert f"{side}_API_KEY=" in line
    assert f"{side}_API_SECRET" in line
    assert "wrong" not in line
    assert orders.topics(orders.grape) == set()


async def test_a_broker_that_nobody_answers_for_is_named_and_asked_again(orders: Link) -> None:
    nowhere = {"DESTINATION_BROKER_SERVERS": "127.0.5.9:9"}
    async with orders.tunnel(), orders.running("replicate", **nowhere) as replicator:
        line = await replicator.wait_for_line("no broker of the destination cluster answers", PATIENCE)
        assert "127.0.5.9:9" in line
        assert "DESTINATION_BROKER_SERVERS" in line
        psutil.Process(replicator.pid).send_signal(signal.SIGTERM)
        assert await replicator.wait(PATIENCE) == 0
    assert sum("no broker of the destination" in line for line in lines(replicator)) == 1


@pytest.mark.release  # held by tests/real/doctor/test_doctor.py, and its end by the wrong key above
async def test_a_certificate_that_nobody_trusted_signed_names_the_ca_file(orders: Link) -> None:
    other = {"SOURCE_CA_FILE": str(orders.grape.ca_file)}
    async with orders.tunnel(), orders.running("replicate", **other) as replicator:
        assert await replicator.wait(PATIENCE) == 1
    line = ended_by(replicator)
    assert "SOURCE_CA_FILE" in line


@pytest.mark.parametrize(
    ("variable", "value"),
    [("REPLICA_TOPICS_SOURCE_REGEX", "orders(["), ("REPLICA_TOPICS_DEST_SUFFIX", "my copy")],
)
async def test_settings_that_cannot_be_used_are_named_before_anything_runs(
    orders: Link, variable: str, value: str
) -> None:
    async with orders.running("replicate", **{variable: value}) as replicator:
        assert await replicator.wait(PATIENCE) == 2
    (line,) = lines(replicator)
    assert f"{variable}={value}" in line
    assert orders.topics(orders.grape) == set()


async def test_a_regex_that_matches_nothing_is_named_and_a_topic_that_comes_later_is_copied(orders: Link) -> None:
    async with orders.tunnel(), orders.running("replicate", REPLICA_TOPICS_SOURCE_REGEX="late.*") as replicator:
        await replicator.wait_for_line("REPLICA_TOPICS_SOURCE_REGEX=late.* matches no topic", PATIENCE)
        orders.make_topic(orders.orange, "late")
        orders.produce("late", 10)
        await until_copied(orders, "late", 10)
    assert orders.topics(orders.grape) == {"late.copy", POSITIONS, OFFSETS, REGISTRY}


@pytest.mark.release  # held by the regex that matches nothing, and tests/real/engine/test_topics.py
async def test_a_new_topic_is_copied_by_the_running_job(orders: Link) -> None:
    orders.produce("orders", 10)
    async with orders.tunnel(), orders.running("replicate", TASKS="2", SLICE_SECONDS="1") as replicator:
        await until_copied(orders, "orders", 10)
        workers = tasks(replicator)
        orders.make_topic(orders.orange, "orders-new", 2)
        for partition in range(2):
            orders.produce("orders-new", 10, partition)
        for partition in range(2):
            await until_copied(orders, "orders-new", 10, partition)
        assert tasks(replicator) == workers
        # Every SLICE_SECONDS the log has the copied records of each task.
        for task in range(2):
            await replicator.wait_for_line(rf" copied task={task} records=\d+ bytes=\d+ partitions=", PATIENCE)
