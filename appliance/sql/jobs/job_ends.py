"""The way of a job's ends to the process of the lanes: a file of their host, or between hosts where the driver says."""

import contextlib
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedRWPair
from pathlib import Path

from appliance.engine.control.assignment import Hello, Question, decode_answer, encode_message
from appliance.engine.control.connection import DIAL_SECONDS, control_tls
from appliance.errors import Unreachable
from appliance.kafka.client.silence import probe
from appliance.runtime.bind import short_path
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.sql.flight.connection import Connection


@dataclass(frozen=True, slots=True)
class LanesOnHosts:
    """The processes of so many tasks on other hosts; the driver knows where, and all know the token of the run."""

    driver: Target
    token: Secret
    tasks: int

    def __len__(self) -> int:
        return self.tasks


Lanes = Sequence[str] | LanesOnHosts
"""The sockets of the tasks' processes on this host, or those on others."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt of a Spark task: which of the lanes' processes it serves, the job's stage, and Spark's number."""

    task: int
    stage: int
    number: int


def connected(lanes: Lanes, attempt: Attempt) -> Connection:
    """The connection of an end; EOFError if the process has gone, Unreachable or OSError if it is not reached."""
    if not isinstance(lanes, LanesOnHosts):
        return Connection(_at_socket(Path(lanes[attempt.task])))
    question = Question(attempt.task, attempt.stage)
    at = _address(lanes, question)
    if at is None:
        raise EOFError
    connection = Connection(_dialled(at, lanes.token), lambda: _address(lanes, question) is not None)
    connection.send(encode_message(Hello(attempt.task, attempt.number)))
    return connection


def _at_socket(path: Path) -> socket.socket:
    """A connection to a process of this host; EOFError if it has gone."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        with short_path(path) as name:
            connection.connect(name)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        raise EOFError from None
    except OSError:
        connection.close()
        raise
    return connection


_drivers: dict[LanesOnHosts, BufferedRWPair] = {}
"""The connection to the driver, which stays from job to job: to open one takes as long as a small job's own work."""


def _address(lanes: LanesOnHosts, question: Question) -> Target | None:
    """The driver's answer."""
    if driver := _drivers.pop(lanes, None):
        with contextlib.suppress(OSError, EOFError):
            answer = _asked(driver, question)
            _drivers[lanes] = driver
            return answer
    with _dialled(lanes.driver, lanes.token) as connection:  # the stream keeps it open
        driver = _drivers[lanes] = connection.makefile("rwb")
    return _asked(driver, question)


def _asked(driver: BufferedRWPair, question: Question) -> Target | None:
    driver.write(encode_message(question))
    driver.flush()
    if not (line := driver.readline()):
        raise EOFError
    return decode_answer(line)


def _dialled(at: Target, token: Secret) -> ssl.SSLSocket:
    """A connection between hosts; both ends know the token."""
    try:
        with contextlib.ExitStack() as undone:
            plain = undone.enter_context(socket.create_connection((at.host, at.port), timeout=DIAL_SECONDS))
            probe(plain)
            connection = control_tls(token.reveal(), Side.DESTINATION).wrap_socket(plain)
            undone.pop_all()
            return connection
    except OSError as error:
        raise Unreachable(f"{socket.gethostname()} does not reach the SQL's lanes by {at}: {error}") from error
