"""Tables and coloured lines at a terminal: the one place that uses rich, whose markup no text is taken for.

A table fits its width. It wraps cells between words, then has no frame, and then hides the columns that matter least,
which a line below names. Only if nothing else helps, names are cut in the middle, and long words are folded.
"""

import io
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import IO, Any

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from appliance.output import printable

__all__ = ["Column", "Group", "RenderableType", "Table", "Text", "cell", "command", "html", "show", "table", "terminal"]

_WIDTH, _PAGE_WIDTH = 1000, 140
"""Columns where there is no terminal, wide enough that no line is broken, and of a page."""

_NO_FRAME: Mapping[str, Any] = {"box": box.SIMPLE, "show_edge": False, "pad_edge": False, "padding": (0, 1, 0, 0)}
_SENTENCE_MIN, _WORD_MAX = 16, 40
"""Width to which a cell of several words may shrink, and longest word for which columns are hidden."""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="3"><title>TITLE</title></head>
<body style="margin: 1em; color: {foreground}; background: {background}"><pre>{code}</pre></body></html>
"""


def cell(*lines: str, style: str = "") -> Text:
    """Lines as they are, whatever they look like."""
    return Text("\n".join(map(printable, lines)), style, overflow="fold")


def command(line: str) -> Text:
    """A line for a shell, which is never wrapped: its first half may be a command too."""
    return Text(printable(line), no_wrap=True, overflow="ignore")


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    title: str = "",
    right: Container[str] = (),
    unbroken: Container[str] = (),
    hide: Sequence[str] = (),
    **layout: Any,
) -> "Table":
    """A table, with some columns to the ``right``, and some that are never wrapped; ``layout`` is rich's.

    Columns to ``hide`` are those that a narrow terminal does without, the least important first.
    """
    cells = [[each if isinstance(each, Text) else cell(each) for each in row] for row in rows]
    return Table([printable(name) for name in columns], cells, title, right, unbroken, hide, layout)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of any width, as ``table`` makes it."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Text]]
    title: str
    right: Container[str]
    unbroken: Container[str]
    hide: Sequence[str]
    layout: Mapping[str, Any]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        natural = [max(map(cell_len, self._lines(at))) for at in range(len(self.columns))]
        least = [self._least(at, width) for at, width in enumerate(natural)]
        shown, hidden, room = [*range(len(natural))], list[str](), options.max_width
        framed = "box" not in self.layout and sum(least) + 3 * len(least) + 1 <= room
        if not framed:
            for name in self.hide:
                if sum(least[at] + 2 for at in shown) - 2 > room:
                    shown.remove(self.columns.index(name))
                    hidden.append(name)
        room -= 3 * len(shown) + 1 if framed else 2 * len(shown) - 2
        widths = dict(zip(shown, _spread(room, [(least[at], natural[at]) for at in shown]), strict=True))
        yield self._grid(widths, {} if framed else _NO_FRAME)
        is_cut = any(_is_cut(line, width) for at, width in widths.items() for line in self._lines(at))
        if hidden or is_cut:
            told = [*[f"hides {', '.join(hidden)}"] * bool(hidden), *["cuts names"] * is_cut]
            yield cell(f"this width {' and '.join(told)}: --json has all", style="dim")

    def _lines(self, at: int) -> Iterator[str]:
        yield self.columns[at]
        for row in self.rows:
            yield from row[at].plain.split("\n")

    def _least(self, at: int, natural: int) -> int:
        """The width in which no word of a column is broken, but for a very long one."""
        if self.columns[at] in self.unbroken:
            return natural
        word = max(cell_len(word) for line in self._lines(at) for word in line.split(" "))
        return max(min(natural, _SENTENCE_MIN), min(word, _WORD_MAX))

    def _grid(self, widths: Mapping[int, int], layout: Mapping[str, Any]) -> Grid:
        grid = Grid(title=cell(self.title) if self.title else None, **{**layout, **self.layout})
        for at, width in widths.items():
            side: Any = "right" if self.columns[at] in self.right else "left"
            grid.add_column(cell(_cut(self.columns[at], width)), justify=side, overflow="fold", width=width)
        for row in self.rows:
            cells = ((row[at], width) for at, width in widths.items())
            grid.add_row(
                *(
                    cell(*(_cut(line, width) for line in text.plain.split("\n")), style=str(text.style))
                    for text, width in cells
                )
            )
        return grid


def _spread(room: int, widths: Sequence[tuple[int, int]]) -> list[int]:
    """The widths of columns, each from its least to its natural one: wide columns share what narrow ones leave."""
    spread, spare = [least for least, _ in widths], max(0, room - sum(least for least, _ in widths))
    for rank, at in enumerate(sorted(range(len(widths)), key=lambda at: widths[at][1] - widths[at][0])):
        more = min(widths[at][1] - widths[at][0], spare // (len(widths) - rank))
        spread[at] += more
        spare -= more
    while sum(spread) > room and max(spread) > 1:
        spread[spread.index(max(spread))] -= 1
    return spread


def _is_cut(line: str, width: int) -> bool:
    """True for a name, a line of one word, that is too wide."""
    return cell_len(line) > width and " " not in line


def _cut(line: str, width: int) -> str:
    """The line, a name without its middle: its end tells it from its neighbours."""
    if not _is_cut(line, width):
        return line
    return f"{set_cell_size(line, width // 2)}…{set_cell_size(line[::-1], (width - 1) // 2)[::-1]}"


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command's end, as that of any other output; rich ends with 1."""
        raise BrokenPipeError


def terminal(width: int = _WIDTH, file: IO[str] | None = None) -> Console:
    """The console of stdout or another file: as wide as COLUMNS says, else the terminal, else this."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return _Console(file=file)
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    console = _Console(file=file, _environ=environment)
    return console if console.is_terminal else _Console(file=file, width=width, _environ=environment)


def show(*parts: RenderableType, width: int = _WIDTH) -> None:
    """Print tables and lines to stdout."""
    console = terminal(width)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text), crop=False)


def html(title: str, *parts: RenderableType) -> str:
    """A page of HTML with these tables and lines, which loads itself anew every three seconds."""
    console = Console(record=True, file=io.StringIO(), width=_PAGE_WIDTH)
    console.print(*parts, sep="\n")
    return console.export_html(code_format=_PAGE.replace("TITLE", escape(title)), inline_styles=True)
