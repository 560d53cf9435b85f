"""The charts of a link or a topic, and small ones: all of a page have the same time axis, and the same marks."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from appliance.console.model.events import HAND_OVER, RESTART, Event
from appliance.console.model.history import History
from appliance.console.model.rings import Subject
from appliance.listing import some

_NUMBER = re.compile(r"-[0-9]+$")
_LINES_MAX = 10
"""Partitions in a topic's chart."""
SPARK_POINTS = 60
_MARKS = 120
"""Marks of one kind that a chart has room for; those beside each other become one."""


def chart(history: History, events: Iterable[Event], link: str, tier: str, topic: str = "") -> dict[str, Any]:
    """Times in seconds, the curves of the link, or of a topic and its worst partitions, and the marks."""
    rings = history.rings[tier]
    own = [one for one in rings.of if one.topic == topic]
    own = sorted(own, key=lambda one: (one.partition < 0, rings.peak(one)), reverse=True)[: 1 + _LINES_MAX]
    times, curves = rings.curves(own)
    names = [one.topic or "link" if one.partition < 0 else f"{topic}-{one.partition}" for one in own]
    return {
        "from": rings.since / 1000,
        "to": max(rings.at) / 1000,
        "at": [at / 1000 for at in times],
        "series": [{"name": name, **curve} for name, curve in zip(names, curves, strict=True)],
        "marks": [{"at": one.at / 1000, "kind": one.mark} for one in marks(history, events, link, tier, topic)],
    }


def marks(history: History, events: Iterable[Event], link: str, tier: str, topic: str = "") -> list[Event]:
    """The stops, restarts, hand-overs and promotions, the oldest first; those of a kind beside each other are one.

    A run on another host than the one before is a hand-over. With a topic, those of other topics are left out.
    """
    rings, host = history.rings[tier], ""
    until = max(rings.at) + rings.step
    found: dict[tuple[str, int], list[Event]] = {}
    for event in sorted(events):
        kind, subjects = event.mark, {event.subject, _NUMBER.sub("", event.subject)}
        if kind == RESTART:
            kind, host = HAND_OVER if host not in ("", event.by) else kind, event.by
        elif topic and not subjects & {topic, link, "the link"}:
            continue
        if kind and rings.since <= event.at <= until:
            width = rings.step * rings.steps // _MARKS
            found.setdefault((kind, event.at // width), []).append(replace(event, mark=kind))
    return [replace(all_of[0], subject=some([*{one.subject: 0 for one in all_of}])) for all_of in found.values()]


def spark(history: History, subject: Subject) -> list[int | None]:
    """The lag of the last hour in a few points, the largest of each; empty if the subject has no curve."""
    rings, points = history.rings["hour"], list[int | None]([None]) * SPARK_POINTS
    if subject not in rings.of:
        return []
    times, (curves,) = rings.curves([subject])
    for at, lag in zip(times, curves["lag_records"], strict=True):
        place = min(SPARK_POINTS - 1, (at - rings.since) * SPARK_POINTS // (rings.step * rings.steps))
        points[place] = points[place] if lag is None else max(int(lag), points[place] or 0)
    return points
