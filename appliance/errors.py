"""All errors of the appliance, in one taxonomy.

Foreign exceptions are translated at the boundary, with their cause kept (``raise ... from``). The type answers three
questions, so that no caller parses a message:

- *whose fault is it*: ``SettingsError`` is the user's, ``PeerError`` the other end's, all else ours or the world's;
- *does trying again help*: ``retriable``;
- *what does the process exit with*: ``exit_code``.

Whatever asks a cluster may raise four: ``Unreachable``, ``BrokerBusy``, ``BrokerRefused``, ``PeerError``, the last one
also what decodes; what reads batches ``BatchCorrupt``, and what reads settings, opens their files or listens at their
addresses ``SettingsError``. A docstring names them only where they mean something more.

The message is one line, and names the thing to change. Brokers and records say some of its words, so it is bounded.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, TypeVar

_Partition = TypeVar("_Partition", bound=tuple[str, int])


def bounded(text: str, most: int = 1_500) -> str:
    """A text without its middle if it is longer: it begins with what is wrong, and ends with what to do about it."""
    return text if len(text) <= most else f"{text[: most - 503]}...{text[-500:]}"


def os_reason(error: OSError) -> str:
    """The system's words for an error."""
    return os.strerror(error.errno) if error.errno else str(error)


def error_text(error: BaseException) -> str:
    """The type and the words of an exception: its ``repr`` may quote all that was read."""
    return f"{type(error).__name__}: {error}"


class ApplianceError(Exception):
    """Base of all; its text is fit to be shown to the user as it is."""

    retriable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1
    text_max: ClassVar[int] = 1_500

    def __init__(self, text: object = "") -> None:
        super().__init__(bounded(str(text), self.text_max))


def raise_first(errors: Iterable[ApplianceError]) -> None:
    """Raise the first of these errors; without any, all is well."""
    for error in errors:
        raise error


class SettingsError(ApplianceError):
    """The settings cannot be used; ``faults`` are all of them, a line each, none holding a secret."""

    exit_code = 2
    text_max = 1_000_000_000

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


class UnknownTopic(SettingsError):
    """A command is about a topic that is not there."""


class NothingToDo(ApplianceError):
    """Everything is already as a command would make it."""

    exit_code = 0


class ToolMissing(ApplianceError):
    """A program that the machine has to have is absent; the text says how to install it."""

    exit_code = 2


class Interrupted(ApplianceError):
    """The operator has ended a command before its end, by Ctrl-C or SIGTERM."""

    exit_code = 130


class ProcessFailed(ApplianceError):
    """A program that the appliance runs ended, or was not ready in time; below that is the tail of its log."""

    text_max = 20_000


class Unreachable(ApplianceError):
    """The peer does not answer now: refused, timed out, reset, closed."""

    retriable = True


class NameUnresolved(Unreachable):
    """A resolver has no address for a name."""


class BrokerNotAllowed(Unreachable):
    """The tunnel goes to no such broker, so it is not dialled; what it leads waits until the settings allow it."""


class OutOfDescriptors(Unreachable):
    """The process has reached its limit of open sockets. The text says how to raise it."""


class TimedOut(Unreachable):
    """The peer did not answer in time."""


class Draining(Unreachable):
    """The tunnel's server is being stopped: it takes no new connection, and ends what it carries."""


class PeerError(ApplianceError):
    """The other end broke its protocol, or sent bytes that cannot be right."""


class NewerRelease(PeerError):
    """A record has a version that only a newer release of ours knows."""


class IdentityRefused(ApplianceError):
    """TLS: one end does not accept the other's identity."""


class CertificateRefused(IdentityRefused):
    """TLS: a broker does not accept our certificate, or asks for one."""


class TlsRefused(PeerError):
    """TLS: the other end speaks it, and ends the handshake with an alert that is about no certificate."""


class HelloUnanswered(IdentityRefused):
    """TLS: the other end closed on our ClientHello without an answer: it does not accept it."""


class ClockDiffers(IdentityRefused):
    """TLS: the hello or certificate of one end is outside the valid time by the other end's clock."""


class SshUnreachable(Unreachable):
    """The SSH server that carries the tunnel does not answer, or its connection is lost."""


class NoSshServer(PeerError):
    """The peer in place of the SSH server speaks no SSH, or none of today's algorithms."""


class HostKeyDiffers(IdentityRefused):
    """SSH: the server has none of the pinned host keys."""


class LoginRefused(IdentityRefused):
    """SSH: the server does not accept our user or key."""


class ForwardRefused(ApplianceError):
    """The SSH server does not let us reach the tunnel server through it."""


class CredentialsRefused(ApplianceError):
    """SASL: the cluster does not accept the API key, or the token; or a token endpoint does not accept the key."""


class TokenUnavailable(ApplianceError):
    """There is no token to log in with now: its endpoint does not answer, or its command fails."""

    retriable = True


class TargetRefused(ApplianceError):
    """The tunnel will not carry a connection to that target."""


class BrokerUnsupported(ApplianceError):
    """The broker lacks an API version that the appliance needs."""


class BrokerRefused(ApplianceError):
    """A broker answered with an error code that a retry does not cure.

    Args:
        code: the protocol's name of it, for example ``TOPIC_AUTHORIZATION_FAILED``.
        words: the broker's own explanation, in one line; empty where it gave none.
    """

    def __init__(self, message: str, code: str, words: str = "") -> None:
        self.code = code
        self.words = bounded(words)
        super().__init__(message)


class BrokerBusy(BrokerRefused):
    """A broker answered with an error code that the protocol marks as passing, or has failed itself."""

    retriable = True


class OutcomeUnknown(BrokerBusy):
    """A coordinator cannot say whether a transaction was committed: only a new epoch of its id decides that."""


class Fenced(ApplianceError):
    """Another process has fenced this lane's transactional id: invariant B."""


class LayoutChanged(ApplianceError):
    """A lane is not of the link's layout any more, or not yet: whoever wants to write reads the link record again."""


class LayoutChanging(LayoutChanged):
    """The link's layout is being changed, and is known soon."""

    retriable = True


class TransactionTimedOut(ApplianceError):
    """The coordinator aborted a transaction that was not finished in time. A smaller one follows."""

    retriable = True


class BatchCorrupt(PeerError):
    """A record batch contradicts its own header or checksum: it must never be forwarded."""


class PartitionStopped(ApplianceError):
    """A partition waits for the operator's decision: invariant F, nothing is skipped silently."""


class CopyShortened(PartitionStopped):
    """A copy has lost what it had acknowledged (invariant J).

    Args:
        end: the first offset of the copy from which it holds none of our records.
        is_known: True if all of them below that offset are there; False if some may be lost too, unknown which.
    """

    def __init__(self, message: str, end: int, is_known: bool = True) -> None:
        self.end = end
        self.is_known = is_known
        super().__init__(message)


class RanksDeleted(PartitionStopped):
    """Nobody has the next records of an order any more."""


class GapFound(PartitionStopped):
    """The source no longer holds the next record. Going on leaves a gap, which is recorded.

    Args:
        first: the next offset to copy.
        next: the offset at which the copy can continue; -1 when the log that held ``first`` is gone.
        leader_epoch: that of the place ``next``, -1 if unknown.
        cause: the reason, in a few words.
    """

    def __init__(self, message: str, first: int, next: int, leader_epoch: int, cause: str) -> None:  # noqa: A002
        self.first = first
        self.next = next
        self.leader_epoch = leader_epoch
        self.cause = cause
        super().__init__(message)


class ProducersLost(PartitionStopped):
    """Records that links wrote into a source cluster can no longer be told from others' there."""


class CopyRefused(BrokerRefused):
    """The destination will not take a batch of one partition.

    Args:
        partition: the destination's topic and partition.
        number: that of the refused record in the batch, if the broker names it.
        offsets: the source's, of the refused record if it is known, otherwise of the batch; empty until looked up.
    """

    def __init__(self, message: str, code: str, partition: tuple[str, int], number: int | None = None) -> None:
        self.partition = partition
        self.number, self.offsets = number, range(0)
        super().__init__(message, code)


class PartitionsUnavailable(ApplianceError):
    """Some partitions of a request cannot be written now; ``reasons`` are by the destination's topic and partition."""

    retriable = True

    def __init__(self, reasons: Mapping[_Partition, ApplianceError]) -> None:
        self.reasons: Mapping[tuple[str, int], ApplianceError] = dict(reasons.items())
        super().__init__("; ".join(dict.fromkeys(map(str, reasons.values()))))


class CopyLost(ApplianceError):
    """A copy is shorter than its acknowledged writes: invariant J. The next start of the lane finds the offset."""

    retriable = True


class LinkRefused(ApplianceError):
    """The destination's state forbids the link to continue: invariants H and I. The text names the remedy."""


class SqlRefused(ApplianceError):
    """A text is no SQL query, or names what its table does not have."""


class StorageFailed(ApplianceError):
    """The storage of the audit table does not take or give a file now."""

    retriable = True


class Superseded(ApplianceError):
    """Another task of the same replicator has taken this lane: invariant B."""
