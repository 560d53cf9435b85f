r"""The grammar of setenv.sh: lines that every shell reads in the same way; all others are refused.

::

    line   = [ "export" blanks ] NAME "=" value [ blanks "#" comment ] | [ "#" comment ]
    value  = { "'" any but ' "'"  |  '"' { any but " \ $ `  |  \" \\ \$ \` } '"'  |  plain  |  \' }
    plain  = one or more of  A-Z a-z 0-9 _ . / : , + @ % = -

Everything that a shell would expand or interpret is outside of the grammar: ``$``, a backtick, ``~``, ``\``, ``;``,
``&``, ``|``, brackets, patterns. A value has one line, and no control characters but tabs. The source is POSIX, Shell
Command Language, section 2.2, Quoting.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

ENDS_AS_ON_WINDOWS = "expected lines that end as on Unix: here is a carriage return"
"""A fault that mostly all lines of a file have, or none."""

_LINE = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_EMPTY = re.compile(r"[ \t]*(?:#.*)?", re.DOTALL)
_END = re.compile(r"[ \t]*|[ \t]+#.*", re.DOTALL)
_PART = re.compile(r"""'([^']*)'|"((?:[^"\\$`]|\\["\\$`])*)"|([A-Za-z0-9_./:,+@%=-]+)|\\(')""")
_OPEN_DOUBLE = re.compile(r"""(?:"(?:[^"\\$`]|\\["\\$`])*)?""")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is not empty: the assignment, or the fault, which shows nothing of the value.

    ``name`` is None where there is none. ``expands`` says that a shell would put something else in place of a part.
    """

    number: int
    name: str | None
    value: str = ""
    fault: str = ""
    expands: bool = False


def read_lines(text: str) -> Iterator[Line]:
    """Every line of ``text`` that is not empty, nor a comment."""
    for number, line in enumerate(text.split("\n"), 1):
        if not _EMPTY.fullmatch(line):
            yield _read(number, line)


def check_one_line(value: str) -> None:
    """Raise ValueError unless a line can hold ``value``."""
    if _CONTROL.search(value):
        raise ValueError("expected one line of text without control characters")


def quoted(value: str) -> str:
    """``value`` as such a line has it; raises ValueError if none can hold it."""
    check_one_line(value)
    return "'" + value.replace("'", r"'\''") + "'"


def _read(number: int, line: str) -> Line:
    assignment = _LINE.fullmatch(line)
    if not assignment:
        return Line(number, None, fault=ENDS_AS_ON_WINDOWS if line == "\r" else "expected export NAME='value'")
    name, rest = assignment.groups()
    if rest.endswith("\r"):
        return Line(number, name, fault=ENDS_AS_ON_WINDOWS)
    expected = f"expected export {name}='value'"
    if _CONTROL.search(rest):
        return Line(number, name, fault=f"{expected} without control characters")
    parts, at = [], 0
    while part := _PART.match(rest, at):
        parts.append(_unquoted(part))
        at = part.end()
    if _END.fullmatch(rest, at):
        return Line(number, name, "".join(parts))
    cause, expands = _cause(rest, at)
    return Line(number, name, fault=f"{expected} {cause}", expands=expands)


def _unquoted(part: re.Match[str]) -> str:
    single, double, plain, quote = part.groups()
    if double is not None:
        return re.sub(r"\\(.)", r"\1", double)
    return single or plain or quote or ""


def _cause(rest: str, at: int) -> tuple[str, bool]:
    """The reason why the grammar ends at ``at``, and whether it is that a shell would put something else there."""
    within = _OPEN_DOUBLE.match(rest, at)
    assert within is not None
    character = rest[within.end() : within.end() + 1]
    if character in ("", "'"):
        return "on one line: its quote is not closed", False
    if character in "$`":
        return "in single quotes: outside of them a shell puts something else in place of $ and `", True
    return "in single quotes: outside of them a shell would read something else", False
