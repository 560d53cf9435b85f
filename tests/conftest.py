"""Shared fixtures: two plain clusters for a whole session, the carriers of a tunnel, and timeouts.

Every test has its own topics and its own link, with unique names.
"""

import asyncio
import itertools
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from appliance.settings.values import SecurityProtocol
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan, Node
from tests.support.administration import delete_topics, topics
from tests.support.engine import Pair
from tests.support.shared_clusters import shared_clusters
from tests.support.ssh import MakeServer, asyncssh_server, inside_ssh
from tests.support.tls import TLS
from tests.support.tunnel import SECRET, Ends, logged

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it: tables are as wide as in any other pipe

_ADDRESSES = {"orange": "127.0.3.1", "grape": "127.0.3.2"}
_BUSY = {
    "log.cleaner.backoff.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "6000",
}
"""Settings for frequent checks by the broker: in production it waits 10 seconds or more between them. Heartbeats to
itself are rarer than those of the testbed: such brokers are idle most of the time."""
_numbers = itertools.count()


def plain(name: str, address: str) -> ClusterPlan:
    """One broker that starts fast, in plain text."""
    security, busy = SecurityProtocol.PLAINTEXT, tuple(_BUSY.items())
    return ClusterPlan(name, (Node(0, address),), security, heap_megabytes=384, properties=busy)


_NOT_INSTALLED = Path(__file__).parent / "support" / "not_installed"
_SEARCHED = "PYTHONPATH"


def pytest_configure(config: pytest.Config) -> None:
    """Let the processes that tests start import no package that only tests need; not pytest's own."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        os.environ[_SEARCHED] = os.pathsep.join(filter(None, [str(_NOT_INSTALLED), os.environ.get(_SEARCHED)]))


def pytest_addoption(parser: pytest.Parser) -> None:
    stalls = "let the event loops of tests/real stand still at random, chosen by SEED"
    parser.addoption("--stalls", type=int, metavar="SEED", help=stalls)
    parser.addoption("--failures-to", type=Path, metavar="FILE", help="write the names of the tests that failed there")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the names of failed tests for tests/ci.py, which runs them again."""
    if (file := config.getoption("--failures-to")) is not None:
        failed = [report.nodeid for kind in ("failed", "error") for report in terminalreporter.getreports(kind)]
        file.write_text("".join(f"{name}\n" for name in dict.fromkeys(failed)))


@pytest.fixture(params=[TLS, inside_ssh(asyncssh_server)], ids=["tcp", "ssh"])
def ends(request: pytest.FixtureRequest) -> Ends:
    """The tunnel's ends over TCP, and then inside SSH, for tests of both."""
    return request.param


@pytest.fixture
def ssh_server() -> MakeServer:
    """The factory of the SSH servers that carry the tunnel."""
    return asyncssh_server


@pytest.fixture
def no_secret_in_the_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Log everything, and require that the log has no shared secret and no line of asyncssh's own."""
    caplog.set_level(logging.DEBUG)
    yield
    records = caplog.get_records("call")
    assert SECRET not in logged(records)
    assert not [record for record in records if record.name.startswith("asyncssh")]


def plans() -> list[ClusterPlan]:
    """The plans of the source and of the destination."""
    return [plain(name, address) for name, address in _ADDRESSES.items()]


@pytest.fixture(scope="session")
def clusters(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, Cluster]]:
    """The plain clusters, the same in all workers. Tests that kill brokers, or change what links share, have others.

    They have an event loop of their own: the session's ends wherever a file's tests need another kind of loop, and the
    worker that started the clusters would then wait until no other needs them.
    """
    own = tmp_path_factory.getbasetemp()
    directory = own.parent if hasattr(pytestconfig, "workerinput") else own
    running = shared_clusters(plans(), directory)
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        orange, grape = runner.run(running.__aenter__())
        yield orange, grape
        runner.run(running.__aexit__(None, None, None))


@pytest.fixture
def pair(clusters: tuple[Cluster, Cluster]) -> Iterator[Pair]:
    """The clusters, with a unique name for the test's link and topics; no other's name ends with it.

    The topics are deleted at the end, because each test reads the metadata of all topics again and again.
    """
    tag = f"p{os.getpid()}-{next(_numbers)}"
    yield Pair(*clusters, tag=tag)
    for cluster in clusters:
        delete_topics(cluster, [name for name in topics(cluster) if tag in name])
