"""Tables and coloured lines at a terminal: the one place that uses rich, whose markup no text is taken for."""

import io
from collections.abc import Container, Iterable, Sequence
from html import escape
from typing import IO, Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from appliance.output import printable

__all__ = ["Group", "RenderableType", "Table", "Text", "cell", "html", "show", "table", "terminal"]

_WIDTH, _PAGE_WIDTH = 1000, 140
"""Columns where there is no terminal, wide enough that no line is broken, and of a page."""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="3"><title>TITLE</title></head>
<body style="margin: 1em; color: {foreground}; background: {background}"><pre>{code}</pre></body></html>
"""


def cell(*lines: str, style: str = "") -> Text:
    """Lines as they are, whatever they look like."""
    return Text("\n".join(map(printable, lines)), style, overflow="fold")


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    title: str = "",
    right: Container[str] = (),
    unbroken: Container[str] = (),
    **layout: Any,
) -> Table:
    """A table, with some columns to the ``right``, and some that are never broken; ``layout`` is rich's."""
    grid = Table(title=cell(title) if title else None, **layout)
    for name in columns:
        side: Any = "right" if name in right else "left"
        grid.add_column(cell(name), justify=side, overflow="fold", no_wrap=name in unbroken)
    for row in rows:
        grid.add_row(*(each if isinstance(each, Text) else cell(each) for each in row))
    return grid


def terminal(width: int = _WIDTH, file: IO[str] | None = None) -> Console:
    """The console of stdout or another file; of this width where that is no terminal."""
    console = Console(file=file)
    return console if console.is_terminal else Console(file=file, width=width)


def show(*parts: RenderableType, width: int = _WIDTH) -> None:
    """Print tables and lines to stdout."""
    console = terminal(width)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text))


def html(title: str, *parts: RenderableType) -> str:
    """A page of HTML with these tables and lines, which loads itself anew every three seconds."""
    console = Console(record=True, file=io.StringIO(), width=_PAGE_WIDTH)
    console.print(*parts, sep="\n")
    return console.export_html(code_format=_PAGE.replace("TITLE", escape(title)), inline_styles=True)
