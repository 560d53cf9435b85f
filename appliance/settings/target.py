"""Addresses as values: brokers, exact or by pattern, and logins at servers.

Grammar of one entry::

    target  = host ":" port              b0.orange.vpc.example:9093
    pattern = "*." host ":" ports        *.orange.vpc.example:9093    (one or more labels in place of the star)
    ports   = port [ "-" port ]          9092-9099                    (both ends included)

Hosts are compared without case and without a trailing dot (RFC 4343). An IP literal is a legal target of a direct
connection but never of the tunnel, whose targets are names. A host whose last label is a number is an address or
nothing: no top-level domain is one (RFC 3696, section 2), and resolvers read 10.1 and 0xa000001 as addresses.

Texts that are no such entry raise ValueError with what is expected.
"""

import ipaddress
import re
from dataclasses import dataclass

PORTS_MAX = 1000
"""Most ports of one pattern: it should not name every service of its domain."""

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_ENDS_IN_A_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)")


def normal_host(host: str) -> str:
    """The one spelling of a host name: lower case, no trailing dot."""
    return host.rstrip(".").lower()


def comparable_host(host: str) -> str:
    """The one spelling of a host, also of an IP address: IPv6 has several, and one for each address of IPv4."""
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return normal_host(host)
    return str(getattr(address, "ipv4_mapped", None) or address)


def is_ip_literal(host: str) -> bool:
    """True if ``host`` is an IPv4 or IPv6 address rather than a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_itself(host: str) -> bool:
    """True for the names of loopback, which are every machine's own."""
    return host.removeprefix("[").removesuffix("]") in ("localhost", "127.0.0.1", "::1")


def _legal_name(host: str) -> bool:
    if not 0 < len(host) <= 253 or _ENDS_IN_A_NUMBER.fullmatch(host):
        return False
    return all(_LABEL.fullmatch(label) for label in host.split("."))


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """One broker's address; ``host`` in its normal spelling."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Target":
        """``host:port`` to a target."""
        host, separator, port = text.strip().rpartition(":")
        host = normal_host(host).removeprefix("[").removesuffix("]")
        if not separator or not (_legal_name(host) or is_ip_literal(host)):
            cause = ": a host that ends in a number is an IP address" if _ENDS_IN_A_NUMBER.fullmatch(host) else ""
            raise ValueError(f"expected host:port{cause}")
        if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError("expected a port from 1 to 65535")
        return cls(host, int(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, order=True)
class TargetPattern:
    """Every name below ``domain``, on this many ports from ``port`` on."""

    domain: str
    port: int
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "TargetPattern":
        """``*.domain:port`` or ``*.domain:first-last`` to a pattern."""
        star, separator, rest = text.strip().partition("*.")
        if star or not separator:
            raise ValueError("expected *.domain:port")
        domain, _, ports = rest.rpartition(":")
        first, ranged, last = ports.partition("-")
        target = Target.parse(f"{domain}:{first}")
        if is_ip_literal(target.host) or "." not in target.host:
            raise ValueError("expected a domain of at least two labels after the star")
        count = Target.parse(f"{domain}:{last}").port - target.port + 1 if ranged else 1
        if not 1 <= count <= PORTS_MAX:
            raise ValueError(f"expected ports from low to high, {PORTS_MAX} at most")
        return cls(target.host, target.port, count)

    @property
    def ports(self) -> range:
        """The ports, ascending."""
        return range(self.port, self.port + self.count)

    def matches_host(self, host: str) -> bool:
        """True if ``host`` is a legal name below the domain."""
        host = normal_host(host)
        return host.endswith("." + self.domain) and _legal_name(host)

    def __str__(self) -> str:
        last = f"-{self.ports[-1]}" if self.count > 1 else ""
        return f"*.{self.domain}:{self.port}{last}"


@dataclass(frozen=True, slots=True)
class AllowedTargets:
    """The allow-list that both ends of the tunnel and the DNS shim share; ``prefix`` begins its variables' names."""

    exact: tuple[Target, ...]
    patterns: tuple[TargetPattern, ...] = ()
    prefix: str = "SOURCE"

    @property
    def variables(self) -> str:
        """The variables that make the list."""
        return f"{self.prefix}_BROKER_SERVERS, {self.prefix}_BROKER_PATTERN"

    def allows(self, target: Target) -> bool:
        """True if the tunnel may carry a connection to ``target``; never to an IP literal."""
        return not is_ip_literal(target.host) and target.port in self.ports_of(target.host)

    def ports_of(self, host: str) -> tuple[int, ...]:
        """The ports on which ``host`` may be reached, ascending; none when the name is not ours."""
        host = normal_host(host)
        exact = {target.port for target in self.exact if target.host == host}
        by_pattern = {port for pattern in self.patterns if pattern.matches_host(host) for port in pattern.ports}
        return tuple(sorted(exact | by_pattern))


def user_name(value: str) -> str:
    """A user name that needs no quoting anywhere."""
    if not _USER.fullmatch(value):
        raise ValueError("expected a user name: at most 64 of the characters a-z A-Z 0-9 . _ -")
    return value


@dataclass(frozen=True, slots=True)
class Login:
    """A user of a server."""

    user: str
    server: Target

    @classmethod
    def parse(cls, text: str) -> "Login":
        """``user@host:port`` to a login."""
        user, separator, server = text.partition("@")
        if not separator:
            raise ValueError("expected user@host:port")
        try:
            return cls(user_name(user), Target.parse(server))
        except ValueError as error:
            raise ValueError("expected user@host:port") from error

    def __str__(self) -> str:
        return f"{self.user}@{self.server}"
