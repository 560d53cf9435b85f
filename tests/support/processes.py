"""Command lines and states of processes that may end while they are read."""

import contextlib
import ipaddress
from collections.abc import Iterable, Iterator

import psutil


def family(pid: int) -> list[psutil.Process]:
    """The process and all that it has started."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


@contextlib.contextmanager
def suspended(*processes: psutil.Process) -> Iterator[None]:
    """Within the block the processes do nothing; some may be killed meanwhile."""
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


def runs(process: psutil.Process, argument: str) -> bool:
    """True if its command line has this argument; false if it has ended."""
    with contextlib.suppress(psutil.Error):
        return argument in process.cmdline()
    return False


def peers(processes: Iterable[psutil.Process]) -> set[ipaddress.IPv4Address]:
    """The addresses to which the processes are connected; none for ended ones."""
    found: set[ipaddress.IPv4Address] = set()
    for process in processes:
        with contextlib.suppress(psutil.Error):
            remote = [connection.raddr.ip for connection in process.net_connections("inet") if connection.raddr]
            found |= {ipaddress.IPv4Address(address.removeprefix("::ffff:")) for address in remote}
    return found
