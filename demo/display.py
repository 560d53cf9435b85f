"""The demo's progress on stderr: bars on a terminal, plain lines elsewhere; and hints at its end."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Protocol, TextIO

from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn

from appliance.listing import number
from appliance.output import printable
from appliance.tables import Column, Text, cell, terminal
from demo.input import BULK
from demo.running_link import RunningLink
from testbed.tasks import Reached


class Display(Protocol):
    """The display of the steps, and a context manager around all of them."""

    def __enter__(self) -> "Display":
        """Begin to show."""

    def __exit__(self, *failure: object) -> None:
        """Stop the display and leave its lines."""

    def say(self, text: str) -> None:
        """Show a line that stays."""

    def step(self, text: str, total: int | None = None) -> contextlib.AbstractContextManager[Reached]:
        """Show a long step, with its total if known."""


def display(stream: TextIO = sys.stderr) -> Display:
    """The display for this stream: bars on a terminal, lines elsewhere."""
    return Bars(stream) if stream.isatty() else Lines(stream)


class _Count(ProgressColumn):
    """The completed number of the total."""

    def render(self, task: Task) -> Text:
        return cell(f"{number(task.completed)}/{'?' if task.total is None else number(task.total)}", style="green")


_WIDE = 120
"""Columns of a terminal that has room for long bars."""


class Bars:
    """Progress bars, one below the other. In a narrow terminal they are short, and their texts have several lines."""

    def __init__(self, stream: TextIO) -> None:
        console = terminal(file=stream)
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓", table_column=Column(no_wrap=True)),
            TextColumn("{task.description}", table_column=Column()),
            BarColumn(bar_width=28 if console.width >= _WIDE else 8, table_column=Column(no_wrap=True)),
            _Count(table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            console=console,
            # Output to stdout stays on stdout, whichever stream shows the bars.
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> "Bars":
        self._progress.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """A line above the bars."""
        self._progress.console.print(cell(text))

    @contextlib.contextmanager
    def step(self, text: str, total: int | None = None) -> Iterator[Reached]:
        """Add a bar for the step, which stays."""
        bar = self._progress.add_task(text, total=total)
        yield lambda count: self._progress.update(bar, completed=count)
        whole = 1 if total is None else total
        self._progress.update(bar, total=whole, completed=whole)


class Lines:
    """A line when a step begins, and a line when it ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *failure: object) -> None:
        """Do nothing."""

    def say(self, text: str) -> None:
        """Print the line."""
        self._stream.write(f"{printable(text)}\n")
        self._stream.flush()

    @contextlib.contextmanager
    def step(self, text: str, total: int | None = None) -> Iterator[Reached]:
        """Print nothing in between."""
        self.say(f"{text} ...")
        begin = time.monotonic()
        yield lambda _count: None
        amount = "" if total is None else f" {total:,}"
        self.say(f"{text}: done{amount}, {time.monotonic() - begin:.1f} s")


def hints(link: RunningLink, page: str) -> str:
    """Commands that show the demo's data, and the way to stop it."""
    orange, grape = (link.properties_file(cluster) for cluster in (link.source, link.destination))
    return f"""
everything keeps running, in {link.directory}

  the control center           {page}
  the settings of the link     {link.env_file}
  the logs of its processes    tail -f {link.directory}/{{source,destination,replicate,console}}.log

  lag, rates and stops         bin/appliance status --env-file {link.env_file}
  both sides compared          bin/appliance verify --env-file {link.env_file}
  the whole path tested        bin/appliance doctor destination --env-file {link.env_file}
  a pause, until resume        bin/appliance pause --env-file {link.env_file}

with kcat, which is a package of your system:
  the source's topics          kcat -F {orange} -L
  the copies                   kcat -F {grape} -L
  one more record ...          echo hello | kcat -F {orange} -P -t {BULK.name} -p 0
  ... and its copy             kcat -F {grape} -C -t {BULK.copy} -p 0 -o -4 -e -X isolation.level=read_committed

stop it, and remove all of it, with Ctrl-C (or kill {os.getpid()})
"""
