"""Free ports for a cluster that is about to start."""

import contextlib
import socket
from collections.abc import Sequence

from appliance.errors import SettingsError
from testbed.plan import Ports

_ATTEMPTS = 50


def free_ports(addresses: Sequence[str], vpc: int = 0) -> Ports:
    """Three ports, each free on all the addresses at this moment; ``vpc`` asks for one in particular.

    They are let go again, for the brokers to take: call this as late as possible.

    Raises:
        SettingsError: the asked one is taken.
    """
    with contextlib.ExitStack() as held:
        if vpc:
            _hold_requested(held, addresses, vpc)
        home, controller, any_vpc = (_hold_any(held, addresses) for _ in range(3))
        return Ports(home, controller, vpc or any_vpc)


def _hold_requested(held: contextlib.ExitStack, addresses: Sequence[str], port: int) -> None:
    for address in addresses:
        try:
            held.enter_context(socket.create_server((address, port)))
        except OSError as error:
            fault = f"{address}:{port} is taken by another program: stop that, or choose another port"
            raise SettingsError([fault]) from error


def _hold_any(held: contextlib.ExitStack, addresses: Sequence[str]) -> int:
    """Holds a port that the kernel chose on the first address and that is free on the others too."""
    for _ in range(_ATTEMPTS):
        with contextlib.ExitStack() as attempt:
            first = attempt.enter_context(socket.create_server((addresses[0], 0)))
            port: int = first.getsockname()[1]
            try:
                for address in addresses[1:]:
                    attempt.enter_context(socket.create_server((address, port)))
            except OSError:
                continue
            held.push(attempt.pop_all())
            return port
    raise SettingsError([f"no port is free on all of {', '.join(addresses)}"])
