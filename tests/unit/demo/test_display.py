"""The display: bars on a terminal, lines elsewhere."""

import io
import re

import pytest

from demo.display import Bars, Lines, display


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_bars_and_a_file_gets_lines():
    assert isinstance(display(Terminal()), Bars)
    assert isinstance(display(io.StringIO()), Lines)


def test_lines_say_when_a_step_begins_and_when_it_is_done():
    stream = io.StringIO()
    with display(stream) as shown, shown.step("copying", 2000) as reached:
        reached(1000)
    assert re.fullmatch(r"copying \.\.\.\ncopying: done 2,000, \d\.\d s\n", stream.getvalue())


def test_a_step_that_failed_is_not_said_to_be_done():
    stream = io.StringIO()
    with pytest.raises(ValueError, match="broken"), display(stream) as shown, shown.step("copying"):
        raise ValueError("broken")
    assert stream.getvalue() == "copying ...\n"


@pytest.mark.parametrize("total", [None, 2000])
def test_a_bar_ends_full(total):
    stream = Terminal()
    with display(stream) as shown, shown.step("copying", total) as reached:
        reached(10)
        shown.say("a line [with brackets]")
    last = stream.getvalue().rpartition("copying")[2]
    assert f"{total or 1:,}/{total or 1:,}" in last
    assert "a line [with brackets]" in stream.getvalue()


def test_lines_that_are_printed_meanwhile_go_to_stdout_and_not_among_the_bars(capsys):
    stream = Terminal()
    with display(stream) as shown, shown.step("copying"):
        print("result")
    assert capsys.readouterr().out == "result\n"
    assert "result" not in stream.getvalue()
