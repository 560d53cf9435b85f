"""The knowledge of the far end of the tunnel: its newest status document, and why there is none newer; pure.

    no document -> asked -> answered | failed -> asked again

The last document stays, with its time, when the far end no longer answers. Times are in seconds since 1970.
"""

import json
from dataclasses import dataclass, replace

from appliance.errors import ApplianceError, PeerError, TargetRefused
from appliance.gateway.model.health import STALE_SECONDS
from appliance.settings.values import Side

REFRESH_SECONDS = 3.0
"""Age from which a document is renewed when somebody asks, in seconds; a failure is tried again after as many."""

OLDER_RELEASE_SECONDS = 300.0
"""Pause after the answer of an older release, in seconds: it counts and logs each request as a target refused."""

LEVELS_MAX = 8
"""Most levels of a document, which has three: indentation makes a deep one many times as long."""

_NOT_ASKED = "nobody asked for it until now; it is being fetched"
_OLDER_RELEASE = "the source VM's end is of an older release, which does not tell its status"

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Unknown:
    """The time since which nothing newer is known, and the reason."""

    since: float
    reason: str


@dataclass(frozen=True, slots=True)
class FarView:
    """The newest document, and its time ``at``: None before the first.

    ``failure`` is that of the last attempt, None when it brought a document. ``pause`` is the time from the end of an
    attempt to the next, in seconds.
    """

    document: Json | None = None
    at: float | None = None
    failure: Unknown | None = None
    pause: float = REFRESH_SECONDS

    def answered(self, document: Json, now: float) -> "FarView":
        """The view after an answer."""
        return FarView(document, now)

    def failed(self, error: Exception, now: float) -> "FarView":
        """The view after an attempt without an answer; an older release's last document is of another process."""
        since = self.failure.since if self.failure else now
        if isinstance(error, TargetRefused):
            return FarView(failure=Unknown(since, _OLDER_RELEASE), pause=OLDER_RELEASE_SECONDS)
        reason = str(error) if isinstance(error, ApplianceError) else f"a defect of this end: {type(error).__name__}"
        return replace(self, failure=Unknown(since, reason), pause=REFRESH_SECONDS)

    def unknown(self, now: float) -> Unknown | None:
        """The reason why the document is not of now; None when it is."""
        if self.failure:
            return self.failure
        if self.at is not None and now - self.at <= STALE_SECONDS:
            return None
        return Unknown(now if self.at is None else self.at, _NOT_ASKED)


def read_document(data: bytes, link: str) -> Json:
    """The far end's status document.

    The far end is authenticated, and may still be of another release, or in an attacker's hands. So only what all
    releases have in common is checked, and that our own page can be written with it.
    """
    try:
        document = json.loads(data)
        # Python reads some values that are no JSON (NaN) or no text (half of a surrogate pair).
        json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise PeerError("the source VM's end does not answer with a JSON document") from error
    if not isinstance(document, dict) or (document.get("side"), document.get("link")) != (Side.SOURCE, link):
        raise PeerError("the source VM's end does not answer with its status")
    if not _is_flat(document, LEVELS_MAX):
        raise PeerError(f"the source VM's end does not answer with its status: more than {LEVELS_MAX} levels")
    return document


def _is_flat(value: object, levels: int) -> bool:
    """True if objects and lists are nested in at most so many levels."""
    if not isinstance(value, dict | list):
        return True
    inside = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_flat(each, levels - 1) for each in inside)
