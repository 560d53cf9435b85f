"""A broker's error code as one of our errors."""

from kio.schema.errors import ErrorCode

from appliance.errors import ApplianceError, BrokerBusy, BrokerRefused, Fenced

_FENCED = frozenset(
    {
        ErrorCode.producer_fenced,
        ErrorCode.invalid_producer_epoch,
    }
)


def failure(code: ErrorCode, doing: str) -> ApplianceError:
    """The error for a code other than none; ``doing`` says what was asked, for example ``produce to orders.copy-3``."""
    name = code.name.upper()
    if code in _FENCED:
        return Fenced(f"{doing}: {name}")
    if code.retriable:
        return BrokerBusy(f"{doing}: {name}", name)
    return BrokerRefused(f"{doing}: {name}", name)


def check(code: ErrorCode, doing: str) -> None:
    """Nothing for ``none``.

    Raises:
        Fenced, BrokerBusy, BrokerRefused: see ``failure``.
    """
    if code is not ErrorCode.none:
        raise failure(code, doing)
