"""Dial a broker by name and port: find its addresses, reach one, agree on TLS."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence

from appliance.errors import IdentityRefused, Unreachable
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.interface import TIMEOUTS, Timeouts
from appliance.kafka.client.tls_refusal import refusal
from appliance.settings.target import Target

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Finds the addresses of a host name; raises NameUnresolved or Unreachable."""

Accept = Callable[[Target, Sequence[str]], None]
"""Raises the refusal of a target that may not be dialled; asked before its addresses are known, and with them."""


def accept_all(target: Target, addresses: Sequence[str]) -> None:
    """Dial whatever a cluster names, as any client in its network does."""


async def connect(
    target: Target,
    resolve: Resolve,
    client_id: str,
    tls: ssl.SSLContext | None,
    timeouts: Timeouts = TIMEOUTS,
    accept: Accept = accept_all,
) -> BrokerConnection:
    """A connection to ``target``, the first of its addresses that answers; TLS checks the target's own name.

    Raises:
        BrokerNotAllowed, NameUnresolved, TargetRefused: ``accept`` refuses it, or the resolver has no address.
        IdentityRefused: the certificate is not the target's, or no trusted authority signed it.
        CertificateRefused: the target does not accept our certificate; with TLS 1.3, an answer may raise it later.
    """
    loop = asyncio.get_running_loop()
    failure: Exception | None = None
    for address in await _addresses(target, resolve, accept, timeouts):
        try:
            async with asyncio.timeout(timeouts.connect):
                _, connection = await loop.create_connection(
                    lambda: BrokerConnection(target, client_id, timeouts),
                    address,
                    target.port,
                    ssl=tls,
                    server_hostname=target.host if tls else None,
                )
                return connection
        except ssl.SSLCertVerificationError as error:
            raise IdentityRefused(f"the certificate of {target} is not accepted: {error.verify_message}") from error
        except ssl.SSLEOFError as error:
            failure = error
        except ssl.SSLError as error:
            raise refusal(target, error) from error
        except (OSError, TimeoutError, ValueError, OverflowError) as error:  # the last two: no such host name, or port
            failure = error
    raise Unreachable(f"cannot connect to {target}: {_reason(failure)}") from failure


async def _addresses(target: Target, resolve: Resolve, accept: Accept, timeouts: Timeouts) -> Sequence[str]:
    accept(target, ())
    try:
        async with asyncio.timeout(timeouts.connect):
            addresses = await resolve(target.host)
    except TimeoutError as error:
        raise Unreachable(f"no address of {target.host} was found within {timeouts.connect:g} s") from error
    accept(target, addresses)
    return addresses


def _reason(failure: Exception | None) -> str:
    if isinstance(failure, TimeoutError):
        return "no answer in time"
    if isinstance(failure, ConnectionResetError):
        return "connection reset"
    return str(failure)
