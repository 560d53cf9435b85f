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
from unicodedata import category
from unicodedata import name as name_of

ENDS_AS_ON_WINDOWS = "expected lines that end as on Unix: here is a carriage return"
"""A fault that mostly all lines of a file have, or none."""

_APOSTROPHE = r"; an apostrophe in the value is written '\''"
_QUOTES = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2032\u2033"
"""Quotes of a text for people, which an editor puts in the place of ' and "."""

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
    ``cure`` is what sed would do about the fault; empty if nothing.
    """

    number: int
    name: str | None
    value: str = ""
    fault: str = ""
    expands: bool = False
    cure: str = ""


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
    name, rest = assignment.groups() if assignment else (None, line)
    if rest.endswith("\r"):
        return Line(number, name, fault=ENDS_AS_ON_WINDOWS, cure=r"'s/\r$//'")
    seen, cure = _misleading_character(number, line)
    if name is None:
        return Line(number, None, fault=f"expected export NAME='value'{seen}", cure=cure)
    expected = f"expected export {name}='value'"
    if control := _CONTROL.search(line):
        here = f"here is U+{ord(control[0]):04X}, character {control.start() + 1} of the line"
        return Line(number, name, fault=f"{expected} without control characters: {here}")
    parts, at = [], 0
    while part := _PART.match(rest, at):
        parts.append(_unquoted(part))
        at = part.end()
    if _END.fullmatch(rest, at):
        return Line(number, name, "".join(parts))
    cause, expands = _cause(rest, at)
    return Line(number, name, fault=f"{expected} {cause}{seen}", expands=expands, cure=cure)


def in_place_of(unseen: str) -> str | None:
    """The text in place of a character that nobody sees, as a page or a mail has them; None if it is none."""
    return None if unseen == " " else {"Cf": "", "Zs": " ", "Zl": " ", "Zp": " "}.get(category(unseen))


def _misleading_character(number: int, text: str) -> tuple[str, str]:
    """The words about the first character that is not seen, or looks like another one, and sed's cure; or nothing."""
    for character in text:
        replacement = "'" if character in _QUOTES else in_place_of(character)
        if replacement is not None:
            name = "byte order mark" if character == "\ufeff" else name_of(character, "").lower()
            seen = f": here is U+{ord(character):04X} ({name})"
            code = "".join(f"\\x{byte:02x}" for byte in character.encode())
            return seen, f'"{number}s/{code}/{replacement}/g"'
    return "", ""


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
    apostrophe = _APOSTROPHE if rest.count("'") > 2 or (rest[:1] != "'" and "'" in rest) else ""
    if character in ("", "'"):
        return f"on one line: its quote is not closed{apostrophe}", False
    if character in "$`":
        return "in single quotes: outside of them a shell puts something else in place of $ and `", True
    return f"in single quotes: outside of them a shell would read something else{apostrophe}", False
