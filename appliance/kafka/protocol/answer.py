"""Brokers' error codes as our errors, and the answers to a request about many subjects."""

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from kio.schema.errors import ErrorCode

from appliance.errors import ApplianceError, BrokerBusy, BrokerRefused, Fenced

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_FENCED = frozenset({ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch})

_OF_THE_BROKER = frozenset({ErrorCode.unknown_server_error, ErrorCode.broker_not_available})
"""Failures inside a broker, for example of its tiered storage: they pass, though the protocol does not say so."""

OF_THE_RECORDS = frozenset(
    {
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
        "MESSAGE_TOO_LARGE",
        "POLICY_VIOLATION",
        "RECORD_LIST_TOO_LARGE",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    }
)
"""Refusals of records for what they are, in a Fetch or a Produce. All others say nothing of them: a retry may help."""


def failure(code: ErrorCode, doing: str, words: str | None = None) -> ApplianceError:
    """The error for a code other than none; ``doing`` names the request, for example ``produce to orders.copy-3``.

    ``words`` is the broker's own explanation, if the protocol has one.
    """
    name = code.name.upper()
    if words is not None:
        words = " ".join(words.split())
        doing = f"{doing} ({words})"
    if code in _FENCED:
        return Fenced(f"{doing}: {name}")
    if code.retriable or code in _OF_THE_BROKER:
        return BrokerBusy(f"{doing}: {name}", name, words or "")
    return BrokerRefused(f"{doing}: {name}", name, words or "")


def check(code: ErrorCode, doing: str) -> None:
    """Raise the error of a code other than ``none``."""
    if code is not ErrorCode.none:
        raise failure(code, doing)


class Answers(NamedTuple, Generic[Key, Value]):
    """The values of the subjects of a request, and the errors of the others."""

    values: dict[Key, Value]
    failures: dict[Key, ApplianceError]

    def take(self, key: Key, value: Value, code: ErrorCode, doing: str, words: str | None = None) -> None:
        """Add a subject's value, or its error, as in ``failure``."""
        if code is ErrorCode.none:
            self.values[key] = value
        else:
            self.failures.setdefault(key, failure(code, doing, words))
