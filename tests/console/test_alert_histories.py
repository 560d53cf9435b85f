"""Every alert fires within minutes for each state that needs a person, and is quiet otherwise (invariant N).

The histories are simulated on virtual time. What a person is needed for is known by their own two logs. The page is the
product's own, and promtool says what fires.
"""

import gc
import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.monitoring.promql import metrics
from tests.console.firing import Seen, conditions, due, faults, firing
from tests.simulation.scrapes import Series
from tests.simulation.view_mutations import TOO_LOUD, TOO_QUIET, VIEW_MUTATIONS
from tests.simulation.watched_histories import DIRECTED, Play, by_chance

_, *_OTHER_STOPS = (name for name in DIRECTED if name.startswith("a stop: "))
"""One alert tells of every kind of stop."""


def played(name: str, play: Play) -> Seen:
    """A history, from its first scrape to its last."""
    random.seed(0)
    logging.disable(logging.CRITICAL)
    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            link = play(patch)
            link.loop.close()
    finally:
        gc.enable()
        logging.disable(logging.NOTSET)
    return Seen(name, link.console.series, link.needs.certain, link.needs.arguable)


def wrong(directory: Path, seen: Sequence[Seen], changed: dict[str, str] | None = None) -> list[str]:
    """All that is wrong with the alerts of these histories."""
    fires = firing(directory, [each.series for each in seen], changed)
    return [fault for each, told in zip(seen, fires, strict=True) for fault in faults(each, told)]


@pytest.fixture(scope="module")
def directed() -> dict[str, Seen]:
    """A history for each state that needs a person; of the stops, one kind."""
    return {name: played(name, play) for name, play in DIRECTED.items() if name not in _OTHER_STOPS}


def test_every_alert_has_a_history_in_which_a_person_is_needed(directed: dict[str, Seen]) -> None:
    needed = {alert for seen in directed.values() for at in range(len(seen.certain)) for alert, _ in due(seen, at)}
    assert needed == conditions().keys()


def test_an_alert_fires_for_each_state_that_needs_a_person_and_for_no_other(
    directed: dict[str, Seen], tmp_path: Path
) -> None:
    """Also in the histories of two cases.

    Case 900, "retention was faster": a gap's counter had no sample exactly an hour ago, and so an old gap was told
    again as a new one. Case 901, "the replicator ends again and again" and "the link is refused": its page came and
    went, and no alert's condition held for two minutes.
    """
    assert wrong(tmp_path, [*directed.values()]) == []


@pytest.mark.release  # held by the test above, and for the state of each stop by tests/simulation/test_stop_remedies.py
def test_an_alert_fires_for_each_kind_of_stop(tmp_path: Path) -> None:
    assert wrong(tmp_path, [played(name, DIRECTED[name]) for name in _OTHER_STOPS]) == []


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 16), marks=pytest.mark.release)], ids=str)
def test_in_random_histories_the_alerts_tell_what_the_logs_show(tmp_path: Path, seeds: range) -> None:
    seen = [played(f"seed {seed}", lambda patch, seed=seed: by_chance(seed, patch)) for seed in seeds]
    assert wrong(tmp_path, seen) == []


def telling(directed: dict[str, Seen], alert: str) -> Seen:
    """The shortest history in which an alert has to fire."""
    found = [seen for seen in directed.values() for at in range(len(seen.certain)) if alert in dict(due(seen, at))]
    return min(found, key=lambda seen: len(seen.certain))


def few(directed: dict[str, Seen]) -> list[Seen]:
    """A history in which each alert has to fire, and others in which some must not."""
    needed = {seen.name: seen for alert in conditions() for seen in [telling(directed, alert)]}
    return [*needed.values(), *(directed[name] for name in ("faults heal", "retention was faster"))]


def rewritten(mutations: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The conditions, each made wrong."""
    for alert, (old, _) in mutations.items():
        assert old in conditions()[alert]
    return {alert: condition.replace(*mutations[alert]) for alert, condition in conditions().items()}


def test_an_alert_that_is_too_quiet_is_caught(directed: dict[str, Seen], tmp_path: Path) -> None:
    found = wrong(tmp_path, few(directed), rewritten(TOO_QUIET))
    for alert in conditions():
        assert [fault for fault in found if f"silent: {alert} " in fault], alert


def test_an_alert_that_is_too_loud_is_caught(directed: dict[str, Seen], tmp_path: Path) -> None:
    found = wrong(tmp_path, few(directed), rewritten(TOO_LOUD))
    for alert in conditions():
        assert [fault for fault in found if f"false: {alert} " in fault], alert


def without(seen: Seen, metric: str) -> Seen:
    """The history with a page that lacks a metric."""
    left = {name: own for name, own in seen.series.samples.items() if not name.startswith(f"{metric}{{")}
    return replace(seen, name=metric, series=Series(seen.series.scrapes, left))


@pytest.mark.release  # each alert has a case that fails without its metrics, in test_promtool.py
def test_a_metric_that_is_never_written_is_caught(directed: dict[str, Seen], tmp_path: Path) -> None:
    used = [(metric, name) for name, condition in conditions().items() for metric in metrics(condition)]
    found = wrong(tmp_path, [without(telling(directed, alert), metric) for metric, alert in used])
    for metric in dict(used):
        assert [fault for fault in found if fault.startswith(f"{metric},")], metric


@pytest.mark.release  # held by tests/unit/status/test_metrics.py and test_compose.py
@pytest.mark.parametrize("mutation", VIEW_MUTATIONS)
def test_a_view_made_wrong_is_caught(mutation: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mutate, history, need = VIEW_MUTATIONS[mutation]
    mutate(monkeypatch)
    found = wrong(tmp_path, [played(mutation, DIRECTED[history])])
    assert [fault for fault in found if fault.endswith(": " + " ".join(need))], found
