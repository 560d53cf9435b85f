"""The listening sockets of a machine, and a port scan from another machine."""

import json
import sys
from dataclasses import dataclass

from tests.support.namespace import Namespace


@dataclass(frozen=True, slots=True)
class Ports:
    """The result of a scan of all TCP ports: accepting ports, and the numbers of refusing and silent ones."""

    open: list[int]
    closed: int
    silent: int


def scan(machine: Namespace, address: str) -> Ports:
    """Scan every port of an address from a machine."""
    return Ports(**json.loads(machine.say(sys.executable, "-m", "tests.networks.programs.scan", address)))


def listening(machine: Namespace) -> set[tuple[str, int]]:
    """The addresses and ports on which a machine accepts TCP connections, or datagrams from any sender."""
    columns = [line.split() for line in machine.say("ss", "-H", "-l", "-n", "-t", "-u").splitlines()]
    return {_place(column[4]) for column in columns}


def _place(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    return ("::" if address == "*" else address.strip("[]").removeprefix("::ffff:")), int(port)
