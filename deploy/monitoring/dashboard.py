"""The dashboard as Grafana imports it: the rows of ``panels`` on a grid, for the chosen links and instances."""

import json
from collections.abc import Iterator, Sequence

from appliance.metrics import METRICS
from deploy.monitoring.panels import ROWS, Panel, PanelType
from deploy.monitoring.promql import metrics, restricted

Json = dict[str, object]

_CHOSEN = 'link=~"$link", instance=~"$instance"'
_SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
_SCHEMA = 39
"""Grafana 10.4's; newer versions read it as well."""

_GRID = 24
_SIZES = {PanelType.STAT: (4, 4), PanelType.TIME_SERIES: (12, 8), PanelType.TABLE: (12, 8)}
"""Width and height of each type, in units of the grid."""


def dashboard_file() -> str:
    """The text of the dashboard's file."""
    return json.dumps(_dashboard(), indent=2) + "\n"


def _dashboard() -> Json:
    return {
        "title": "Kafka replicator",
        "uid": "kafka-cloud-replicator",
        "description": "Links, topics, groups, tunnels: docs/run/monitoring.md. Each metric: docs/reference/status.md.",
        "tags": ["kafka"],
        "schemaVersion": _SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": list(_variables())},
        "panels": list(_panels()),
    }


def _variables() -> Iterator[Json]:
    yield {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}}
    every = '__name__=~"kafka_(replicator|order)_snapshot_timestamp_seconds|kafka_tunnel_build_info"'
    yield _label("link", "Link", f"label_values({{{every}}}, link)")
    yield _label("instance", "Instance", f'label_values({{{every}, link=~"$link"}}, instance)')


def _label(name: str, title: str, query: str) -> Json:
    """A variable with the values of a label. ``.*`` also matches where the label is missing."""
    return {
        "name": name,
        "label": title,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "refresh": 2,
        "sort": 1,
    }


def _panels() -> Iterator[Json]:
    """The rows and panels, from left to right and from top to bottom."""
    number, top = 0, 0
    for title, panels in ROWS.items():
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "panels": [],
            "gridPos": _at(0, top, _GRID, 1),
        }
        top += 1
        for line in _lines(panels):
            left, tallest = 0, 0
            for panel in line:
                width, height = _SIZES[panel.type]
                number += 1
                yield {"id": number, **_panel(panel), "gridPos": _at(left, top, width, height)}
                left, tallest = left + width, max(tallest, height)
            top += tallest


def _lines(panels: Sequence[Panel]) -> Iterator[list[Panel]]:
    """The panels in lines that are full, or end where the type's height changes."""
    line: list[Panel] = []
    for panel in panels:
        width, height = _SIZES[panel.type]
        used = sum(_SIZES[other.type][0] for other in line)
        if line and (used + width > _GRID or _SIZES[line[0].type][1] != height):
            yield line
            line = []
        line.append(panel)
    if line:
        yield line


def _at(left: int, top: int, width: int, height: int) -> Json:
    return {"x": left, "y": top, "w": width, "h": height}


def _panel(panel: Panel) -> Json:
    panel_json: Json = {
        "type": panel.type.value,
        "title": panel.title,
        "description": _description(panel),
        "datasource": _SOURCE,
        "targets": [_target(panel, *query, chr(ord("A") + n)) for n, query in enumerate(panel.queries.items())],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _OPTIONS[panel.type],
    }
    if panel.type is PanelType.TABLE:
        panel_json["transformations"] = [_columns(panel)]
    return panel_json


def _description(panel: Panel) -> str:
    """The meaning of each metric of a panel."""
    used = set().union(*map(metrics, panel.queries))
    return "\n\n".join(f"{name}: {metric.help}" for name, metric in METRICS.items() if name in used)


def _target(panel: Panel, expression: str, legend: str, name: str) -> Json:
    """A query; stats and tables show the present value only, so that what is gone is not shown as current."""
    curve = panel.type is PanelType.TIME_SERIES
    return {
        "refId": name,
        "datasource": _SOURCE,
        "expr": restricted(expression, _CHOSEN),
        "legendFormat": legend,
        "instant": not curve,
        "range": curve,
        "format": "table" if panel.type is PanelType.TABLE else "time_series",
    }


def _defaults(panel: Panel) -> Json:
    """The unit, the colours and the words of a panel; a missing value is unknown."""
    defaults: Json = {"unit": panel.unit, "noValue": "unknown", "color": {"mode": "palette-classic"}}
    if panel.type is not PanelType.STAT:
        return defaults
    low, high = ("red", "green") if panel.red_below is not None else ("green", "red")
    bound = panel.red_from if panel.red_below is None else panel.red_below
    steps = [{"color": low, "value": None}, *([] if bound is None else [{"color": high, "value": bound}])]
    words = {str(value): {"text": word} for value, word in panel.words.items()}
    return {
        **defaults,
        "color": {"mode": "thresholds"},
        "thresholds": {"mode": "absolute", "steps": steps},
        "mappings": [{"type": "value", "options": words}] if words else [],
    }


def _columns(panel: Panel) -> Json:
    hidden = ["Time", "__name__", "job", *([] if panel.value else ["Value"])]
    renamed = {"Value": panel.value} if panel.value else {}
    return {"id": "organize", "options": {"excludeByName": dict.fromkeys(hidden, True), "renameByName": renamed}}


_OPTIONS: dict[PanelType, Json] = {
    PanelType.STAT: {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "background",
        "graphMode": "none",
        "textMode": "auto",
    },
    PanelType.TIME_SERIES: {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    PanelType.TABLE: {"showHeader": True, "cellHeight": "sm"},
}
