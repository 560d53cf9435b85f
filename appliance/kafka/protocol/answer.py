"""A broker's error code as one of our errors."""

from kio.schema.errors import ErrorCode

from appliance.errors import ApplianceError, BrokerBusy, BrokerRefused, Fenced

_FENCED = frozenset(
    {
        ErrorCode.producer_fenced,
        ErrorCode.invalid_producer_epoch,
    }
)


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
    if code.retriable:
        return BrokerBusy(f"{doing}: {name}", name, words or "")
    return BrokerRefused(f"{doing}: {name}", name, words or "")


def check(code: ErrorCode, doing: str) -> None:
    """Raise the error of a code other than ``none``.

    Raises:
        Fenced, BrokerBusy, BrokerRefused: see ``failure``.
    """
    if code is not ErrorCode.none:
        raise failure(code, doing)
