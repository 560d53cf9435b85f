"""A command of the page always comes to an end that the page shows, whatever the command prints or ignores."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from appliance.console.commands import CommandRun, Commands

Program = Callable[[str], object]

BYTES_MAX = 500_000
"""Largest page."""


async def test_case_275_a_command_that_cannot_be_started_has_failed() -> None:
    run = CommandRun("Pause", ["pause", "--topic=a\0b"])
    await run.run(Path("setenv.sh"))
    assert (run.exit_code, run.ended is not None) == (1, True)
    assert "cannot be started" in run.lines[0]


async def test_case_276_a_line_without_end_neither_ends_the_command_nor_fills_the_page(program: Program) -> None:
    program("import sys\nfor _ in range(9): print('x' * 2_000_000)\nprint('the end')\nsys.exit(3)\n")
    run = CommandRun("Promote", ["promote"])
    await run.run(Path("setenv.sh"))
    assert (run.exit_code, run.lines[-1]) == (3, "the end")
    assert sum(map(len, run.lines)) < BYTES_MAX


async def test_case_277_of_many_lines_the_last_ones_are_shown_with_the_number_of_the_others(program: Program) -> None:
    program("for number in range(1000): print(number)\n")
    run = CommandRun("Failover, dry run", ["failover"])
    await run.run(Path("setenv.sh"))
    assert run.lines[-1] == "999"
    assert run.lines_before + len(run.lines) == 1000


async def test_case_278_a_command_that_ignores_the_end_does_not_keep_the_control_center(program: Program) -> None:
    """Case 503: on Python 3.11.2 it was not killed, and had no exit code."""
    program(
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready')\nwhile True: signal.pause()\n"
    )
    commands = Commands(Path("setenv.sh"))
    commands.start("Pause", ["pause"])
    while not (commands.last and commands.last.lines):
        await asyncio.sleep(0.01)
    await commands.close()
    assert (commands.running, commands.last.exit_code, [*commands.last.lines]) == (False, -9, ["ready"])


async def test_case_279_one_topic_that_is_not_stopped_any_more_keeps_no_other_from_being_tried_again(
    program: Program,
) -> None:
    program("import sys\nsys.exit('gone' in sys.argv)\n")
    commands = Commands(Path("setenv.sh"))
    commands.start("Restart", ["resume", "gone"], ["resume", "orders"])
    while commands.running:
        await asyncio.sleep(0.01)
    assert commands.last is not None
    assert commands.last.command == ("resume", "orders")
