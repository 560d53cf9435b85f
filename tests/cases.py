"""``python -m tests.cases``: write docs/why/cases.md, the index of the numbered cases.

A case is a fixed bug. Its number is in the name of a test, ``test_case_<number>_<claim>``, or in the test's first
comment, ``Case <number>: <cause>``. The cause is the docstring of the test, or its first comment; without one, the
claim says it.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
INDEX = CHECKOUT / "docs" / "why" / "cases.md"
TITLE = """# Numbered cases

Each fixed bug has a test that fails if it comes back: what the test claims, and what went wrong before where the claim
does not say it. Written by `python -m tests.cases` from the tests.
"""
_NAMED = re.compile(r"test_case_(\d+)_(\w+)")
_NOTED = re.compile(r"Case (\d+)[:,] (?:before, )?(.*)")


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """A numbered case: a test, its claim, and what went wrong before."""

    number: int
    path: str
    line: int
    claim: str
    cause: str


def cases(directory: Path = CHECKOUT / "tests") -> list[Case]:
    """The cases of all tests, by number."""
    return sorted(case for path in directory.rglob("test_*.py") for case in _of_file(path))


def index(of: list[Case]) -> str:
    """The document that lists these cases."""
    rows = [f"| {case.number} | {case.claim} | {case.cause} | `{case.path}` |" for case in of]
    return "\n".join([TITLE, "| case | claim | before | test |", "|---|---|---|---|", *rows, ""])


def _of_file(path: Path) -> Iterator[Case]:
    text = path.read_text()
    lines, name = text.splitlines(), path.relative_to(CHECKOUT).as_posix()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            told = _told(node, lines)
            named, noted = _NAMED.match(node.name), _NOTED.match(told)
            if number := named or noted:
                claim = (named[2] if named else node.name.removeprefix("test_")).replace("_", " ")
                cause = (noted[2] if noted else told).removeprefix("Before, ").replace("|", "\\|")
                yield Case(int(number[1]), name, node.lineno, claim, cause[:1].upper() + cause[1:])


def _told(test: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> str:
    """The first paragraph of a test's docstring, or the comment above its first statement."""
    if docstring := ast.get_docstring(test):
        return " ".join(docstring.partition("\n\n")[0].split())
    body = test.body[0]
    above = []
    for line in reversed(lines[: body.lineno - 1]):
        if not line.strip().startswith("#"):
            break
        above.append(line.strip().lstrip("# "))
    return " ".join(reversed(above))


if __name__ == "__main__":
    INDEX.write_text(index(cases()))
