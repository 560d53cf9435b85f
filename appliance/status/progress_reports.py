"""The progress of a running link: a line of JSON in the log for each interval in which something moved, and a listener.

It is made of the console's snapshots, so of committed facts of both clusters, and no task is asked.
"""

import json
import logging
from typing import Protocol

from appliance.status.model.messages import utc
from appliance.status.model.progress import Json, identity, is_known, progress
from appliance.status.model.snapshot import Snapshot

log = logging.getLogger("appliance.status")

_EARLY = 0.5
"""Seconds by which a snapshot may be early: the next one would come too late."""


class ProgressListener(Protocol):
    """Whoever is told the progress, in the JSON of Structured Streaming's events. No method waits."""

    def started(self, event: Json) -> None:
        """The first known snapshot of a run."""

    def progressed(self, event: Json) -> None:
        """An interval in which something moved."""

    def idle(self, event: Json) -> None:
        """An interval in which nothing moved."""


class ProgressReports:
    """``last`` is the newest progress, None before the first; ``seconds`` is the interval."""

    def __init__(self, seconds: float, listener: ProgressListener | None = None) -> None:
        self.last: Json | None = None
        self._interval = (seconds - _EARLY) * 1000
        self._listener = listener
        self._before: Snapshot | None = None
        self._run: object = None
        self._number = 0

    def seen(self, snapshot: Snapshot) -> None:
        """Report the progress, if the interval is over."""
        if not is_known(snapshot):
            return
        if self._before is None or identity(snapshot)["runId"] != self._run:
            self._begin(snapshot)
        elif snapshot.at - self._before.at >= self._interval:
            self._report(progress(self._before, snapshot, self._number), snapshot)

    def _begin(self, snapshot: Snapshot) -> None:
        """A run begins, or the newest one is another now."""
        names = identity(snapshot)
        self._before, self._run, self._number = snapshot, names["runId"], 0
        if self._listener:
            self._listener.started({**names, "timestamp": utc(snapshot.at), "jobTags": []})

    def _report(self, made: Json, snapshot: Snapshot) -> None:
        self.last, self._before = made, snapshot
        if not (made["numInputRows"] or made["inputRowsPerSecond"]):
            if self._listener:
                self._listener.idle({"id": made["id"], "runId": made["runId"], "timestamp": utc(snapshot.at)})
            return
        self._number += 1
        log.info(f"progress {json.dumps(made)}")
        if self._listener:
            self._listener.progressed({"progress": made})
