"""One picture of results: bars for our figure and the peers', measure by measure.

``bin/bench plot`` draws files with the output of ``--json``. A bar's length is its share of the longest bar of the same
measure, so that one picture can show records a second and megabytes.
"""

import argparse
import importlib.util
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance.errors import ProcessFailed, ToolMissing
from bench.lib.row import Row, figure, from_json

_WIDTH, _INCHES_A_LINE, _MARGIN = 10.0, 0.3, 0.3
_DOTS_AN_INCH = 150
_OURS, _PEER, _TEXT, _FAINT = "#1f6f8b", "#b8bfc6", "#22272b", "#59636b"
_BAR = 0.72
_NAMES, _BARS_END = 0.25, 0.72
_PAD = 0.008
_SIZE = 10


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the picture: a heading without a bar, or a bar with the texts before and after it."""

    name: str
    length: float | None = None
    result: str = ""
    ours: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench plot``."""
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULT", help="a file with the output of --json")
    parser.add_argument("--output", dest="plot", type=Path, required=True, metavar="FILE", help="the PNG file")
    parser.set_defaults(setup=lambda _: {})


async def run(arguments: argparse.Namespace) -> list[Row]:
    """The rows of all the files."""
    return [row for path in arguments.results for row in _read(path)]


def _read(path: Path) -> list[Row]:
    try:
        return from_json(path.read_text())
    except (OSError, ValueError) as error:
        raise ProcessFailed(f"{path} is no result of a benchmark: {error}") from error


def require(path: Path) -> None:
    """Require, before any measurement, that a picture can be drawn into that file."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ToolMissing("matplotlib is missing, it draws the picture: pip install matplotlib")
    if not path.parent.is_dir():
        raise ProcessFailed(f"there is no directory {path.parent} for the picture")


def lines(rows: Sequence[Row]) -> Iterator[Line]:
    """The picture from top to bottom; consecutive rows of the same measure share our bar."""
    for (name, unit, ours), together in itertools.groupby(rows, lambda row: (row.name, row.unit, row.ours)):
        peers = list(together)
        longest = max(ours, *(row.peer for row in peers)) or 1.0
        yield Line(f"{name}, {unit}")
        yield Line("ours", ours / longest, figure(ours), ours=True)
        for row in peers:
            goal = "" if row.goal is None else f", goal {figure(row.goal)}"
            yield Line(row.peer_name, row.peer / longest, f"{figure(row.peer)}   (ratio {row.ratio:.3g}{goal})")


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the rows into a PNG file."""
    from matplotlib.figure import Figure

    picture = list(lines(rows))
    height = len(picture) * _INCHES_A_LINE + _MARGIN
    drawing = Figure(figsize=(_WIDTH, height), dpi=_DOTS_AN_INCH)
    axes = drawing.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0.0, 1.0), ylim=(len(picture) + 0.5, -0.5))
    axes.set_axis_off()
    for at, line in enumerate(picture):
        if line.length is None:
            axes.text(_PAD, at + 0.1, line.name, size=_SIZE, weight="bold", color=_TEXT, va="center")
            continue
        end = line.length * (_BARS_END - _NAMES)
        axes.barh(at, end, left=_NAMES, height=_BAR, color=_OURS if line.ours else _PEER)
        axes.text(_NAMES - _PAD, at, line.name, size=_SIZE, color=_TEXT, ha="right", va="center")
        axes.text(_NAMES + end + _PAD, at, line.result, size=_SIZE, color=_TEXT if line.ours else _FAINT, va="center")
    try:
        drawing.savefig(path, format="png", facecolor="white")
    except OSError as error:
        raise ProcessFailed(f"the picture cannot be written to {path}: {error.strerror}") from error
