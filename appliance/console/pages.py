"""The pages as HTML, from what is known now."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from appliance.clock import now_ms
from appliance.console.commands import CommandRun, Commands
from appliance.console.model.actions import ACTIONS, Proposal, commands, holds, problems_with_commands, stops
from appliance.console.model.charts import chart, marks, spark
from appliance.console.model.history import Sample
from appliance.console.model.rings import Subject
from appliance.console.model.tables import (
    PAGE_SIZE,
    Query,
    groups_page,
    partitions_page,
    topics_page,
)
from appliance.console.model.text import count
from appliance.console.model.worst import fact_since, headline
from appliance.console.templating import filled
from appliance.console.tunnel import TunnelView
from appliance.console.watch import LinkWatch
from appliance.grouping import grouped
from appliance.program import DOCTOR, DOCTOR_ELSEWHERE, PROGRAM
from appliance.settings.values import Route, Settings
from appliance.status.model.messages import problems, remarks
from appliance.status.model.snapshot import LinkState, Snapshot
from appliance.status.model.state_words import replicators
from appliance.status.model.topic_status import TopicStatus, total

_LINES_MAX = 20
_UNKNOWN_SAMPLE = Sample(0, None, None, None, None, None)
_TUNNEL = "tunnel"
_TABS = (
    ("", "Link"),
    ("topics", "Topics"),
    ("groups", "Groups"),
    (_TUNNEL, "Tunnel"),
    ("doctor", "Doctor"),
    ("events", "Events"),
    ("actions", "Commands"),
)
_CURVES = (
    ("lag_records", "Lag, records", "number"),
    ("lag_seconds", "Behind, seconds", "number"),
    ("records", "Records a second", "number"),
    ("bytes", "Bytes a second", "bytes"),
    ("latency_ms", "Latency, ms", "number"),
)
_MARKS_MAX = 8
_LEFT_OUT = "Stopped partitions, and those furthest behind, have charts: {} topics and {} partitions have none."
_LABELS = {
    "topic": "Topics, a regular expression",
    "why": "Reason",
    "to": "To: earliest, latest, an offset, or a time",
    "partition": "Partition",
}


@dataclass(frozen=True, slots=True)
class Viewer:
    """The viewer of a page: ``allowed`` to send commands; ``message`` is for them alone; ``user`` has logged in.

    ``proposal`` is the command whose dry run they have seen.
    """

    allowed: bool = False
    message: str = ""
    user: str = ""
    proposal: Proposal | None = None


class LinkPages:
    """The pages of one link."""

    def __init__(self, settings: Settings, watch: LinkWatch, commands: Commands) -> None:
        self.link = settings.tunnel.link
        self._settings = settings
        self._watch = watch
        self._commands = commands
        self._started = now_ms()

    @property
    def has_tunnel(self) -> bool:
        """True if the source is reached by the tunnel."""
        return self._settings.route is Route.TUNNEL

    def card(self) -> dict[str, Any]:
        """The link in a few numbers, as JSON: for the overview, here and in the other control centers of the VM."""
        snapshot, sample = self._watch.snapshot, self._sample
        return {
            "link": self.link,
            "replicator": self._settings.replicator,
            "source": self._settings.source.cluster_id,
            "destination": self._settings.destination.cluster_id,
            "state": self._state,
            "since": self._since,
            "seen_since": self._watch.state_since,
            "at": snapshot.at if snapshot else None,
            "stale": not self._watch.fresh,
            "reason": "",
            "lag_records": sample.lag_records,
            "lag_seconds": sample.lag_seconds,
            "records": sample.records,
            "topics": _topic_count(snapshot) if snapshot else None,
            "spark": spark(self._watch.history, Subject()),
            "problems": len(problems(snapshot)) if snapshot else None,
        }

    def overview(self, others: list[dict[str, Any]]) -> str:
        """The page of all links: this one, and the cards of ``others``."""
        worst = headline(self._watch.snapshot) if self._watch.snapshot and self._watch.fresh else ""
        own = {**self.card(), "url": f"/links/{self.link}/", "headline": worst}
        return filled("overview.html", title="Control center", cards=[own, *others])

    def main(self, tier: str) -> str:
        """The link itself, with charts of the last hour or day."""
        snapshot, values = self._watch.snapshot, dict[str, Any]()
        if snapshot is not None:
            troubles, lanes, topics = problems_with_commands(snapshot), list(_lanes(snapshot)), _topic_count(snapshot)
            values = {
                "copied": total(topic.copied for topic in snapshot.topics),
                "topics": topics,
                "partitions": sum(len(topic.partitions) for topic in snapshot.topics) if topics is not None else None,
                "headline": headline(snapshot),
                "problems": troubles[:_LINES_MAX],
                "more_problems": max(0, len(troubles) - _LINES_MAX),
                "remarks": remarks(snapshot)[:_LINES_MAX],
                "replicators": replicators(snapshot.replicators, snapshot.replicators_unknown),
                "lanes": lanes[:PAGE_SIZE],
                "more_lanes": max(0, len(lanes) - PAGE_SIZE),
            }
        values["beside"] = {"replicator": self._watch.replicator_unknown, "tunnel": self._watch.tunnel_fault}
        values["has_tunnel"] = self.has_tunnel
        return self._page("link.html", "", sample=self._sample, **self._charts(tier), **values)

    def chart(self, tier: str, topic: str) -> dict[str, Any]:
        """The charts of the link, or of a topic, as JSON."""
        return chart(self._watch.history, self._watch.events, self._settings.replicator, tier, topic)

    def _charts(self, tier: str, topic: str = "") -> dict[str, Any]:
        shown = marks(self._watch.history, self._watch.events, self._settings.replicator, tier, topic)
        notes, (topics, partitions) = [self._watch.history_note], self._watch.history.left_out
        if topics or partitions:
            notes.append(_LEFT_OUT.format(count(topics), count(partitions)))
        curves = [each for each in _CURVES if not topic or each[0] in ("lag_records", "records")]
        return {"range": tier, "curves": curves, "marks": shown[: -_MARKS_MAX - 1 : -1], "note": " ".join(notes)}

    def topics(self, query: Query) -> str:
        """The table of topics."""
        snapshot = self._watch.snapshot
        page = topics_page(snapshot.topics if snapshot else (), query)
        sparks = [spark(self._watch.history, Subject(topic.name)) for topic in page.rows]
        return self._page("topics.html", "topics", page=page, sparks=sparks)

    def topic(self, name: str, query: Query, tier: str) -> str | None:
        """One topic with its partitions; None if there is no such topic."""
        topic = self._topic(name)
        if topic is None:
            return None
        page = partitions_page(topic.partitions, query)
        faults, gaps = stops(topic), [gap for p in topic.partitions for gap in p.gaps or ()]
        return self._page(
            "topic.html",
            "topics",
            **self._charts(tier, name),
            topic=topic,
            topic_commands=commands(topic),
            page=page,
            sparks=[spark(self._watch.history, Subject(name, each.partition)) for each in page.rows],
            stops=faults[:_LINES_MAX],
            notes=holds(topic)[:_LINES_MAX],
            gaps=gaps[:PAGE_SIZE],
            more_gaps=max(0, len(gaps) - PAGE_SIZE),
        )

    def groups(self, query: Query) -> str:
        """The table of groups."""
        snapshot, wanted = self._watch.snapshot, self._settings.groups.wanted
        page = groups_page(snapshot.groups if snapshot else (), query)
        return self._page("groups.html", "groups", page=page, wanted=wanted)

    def events(self) -> str:
        """The events."""
        events = self._watch.events
        more = max(0, len(events) - 2 * PAGE_SIZE)
        return self._page("events.html", "events", events=events[: 2 * PAGE_SIZE], more=more, started=self._started)

    def tunnel(self, view: TunnelView) -> str:
        """Both ends of the tunnel."""
        return self._page("tunnel.html", _TUNNEL, view=view)

    def doctor(self, viewer: Viewer) -> str:
        """The last diagnosis, step by step."""
        diagnosis = self._commands.diagnosis
        return self._page(
            "doctor.html",
            "doctor",
            diagnosis=diagnosis,
            steps=_steps(diagnosis) if diagnosis else (),
            doctor_command=DOCTOR,
            doctor_here=not DOCTOR_ELSEWHERE,
            message=viewer.message,
            **self._commanding(viewer),
        )

    def actions(self, viewer: Viewer) -> str:
        """The commands, for those who have given the token, and what resolves the present problems."""
        snapshot = self._watch.snapshot
        remedies = [each for each in problems_with_commands(snapshot) if each.commands] if snapshot else []
        return self._page(
            "actions.html",
            "actions",
            remedies=remedies[:_LINES_MAX],
            proposal=viewer.proposal,
            actions=ACTIONS,
            labels=_LABELS,
            last=self._commands.last,
            message=viewer.message,
            program=PROGRAM,
            **self._commanding(viewer),
        )

    def _commanding(self, viewer: Viewer) -> dict[str, Any]:
        own = self._settings.control_center
        return {
            "allowed": viewer.allowed,
            "takes_token": bool(own.token),
            "has_login": bool(own.login),
            "user": viewer.user,
            "busy": self._commands.running,
        }

    def login(self, message: str, path: str) -> str:
        """The page after a login, which leads to ``path`` by itself, or without one, which says why."""
        return filled("login.html", title="Login", link=self.link, message=message, path=path)

    @property
    def _guarded(self) -> bool:
        """True if some may send commands."""
        return bool(self._settings.control_center.token or self._settings.control_center.login)

    @property
    def _sample(self) -> Sample:
        return self._watch.history.newest or _UNKNOWN_SAMPLE

    @property
    def _state(self) -> str:
        return self._watch.snapshot.state if self._watch.snapshot and self._watch.fresh else LinkState.UNKNOWN

    @property
    def _since(self) -> int | None:
        """The start of the state: an old snapshot is the last that was known, unless it was unknown itself."""
        snapshot = self._watch.snapshot
        if snapshot is None or self._watch.fresh or snapshot.state is LinkState.UNKNOWN:
            return fact_since(snapshot) if snapshot else None
        return snapshot.at

    def _topic(self, name: str) -> TopicStatus | None:
        topics = self._watch.snapshot.topics if self._watch.snapshot else ()
        return next((topic for topic in topics if topic.name == name), None)

    def _page(self, template: str, tab: str, **values: Any) -> str:
        return filled(
            template,
            title=f"{self._settings.replicator}: {dict(_TABS)[tab]}",
            link=self.link,
            replicator=self._settings.replicator,
            source=self._settings.source.cluster_id,
            destination=self._settings.destination.cluster_id,
            state=self._state,
            since=self._since,
            seen_since=self._watch.state_since,
            guarded=self._guarded,
            snapshot=self._watch.snapshot,
            stale=self._watch.snapshot is not None and not self._watch.fresh,
            tabs=[each for each in _TABS if self.has_tunnel or each[0] != _TUNNEL],
            tab=tab,
            **values,
        )


def _topic_count(snapshot: Snapshot) -> int | None:
    """The number of topics; None while no cluster lists them."""
    return len(snapshot.topics) if snapshot.topics or not snapshot.source.unknown else None


@dataclass(frozen=True, slots=True)
class _Lane:
    number: int
    owner: Any
    partitions: int
    lag: int | None
    rate: float | None


def _lanes(snapshot: Snapshot) -> Iterator[_Lane]:
    by_lane = grouped((partition.lane, partition) for partition in snapshot.partitions)
    for lane in snapshot.lanes:
        own = by_lane.get(lane.lane, [])
        lag, rate = total(p.lag_records for p in own), total(p.rate for p in own)
        yield _Lane(lane.lane, lane.owner, len(own), lag if own else 0, rate if own else 0.0)


def _steps(diagnosis: CommandRun) -> list[dict[str, Any]]:
    try:
        return list(json.loads(diagnosis.output)["steps"]) if diagnosis.ended is not None else []
    except (ValueError, KeyError, TypeError):
        return []
