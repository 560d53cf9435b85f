"""The difference between a file's old and new text, without secrets, so that it can be printed."""

import difflib
import re

from appliance.settings.variables import TABLE
from deploy.render.container import SALT

_CONFIDENTIAL = "|".join(variable.name for variable in TABLE if variable.confidential)
_MENTIONED = re.compile(rf"({_CONFIDENTIAL})(?!\w*_FILE\b)", re.IGNORECASE)
"""The name of a secret in a line, even if the line is badly edited. The path of a file with a secret is not a
secret."""
_WRITTEN = re.compile(rf"export (?:{_CONFIDENTIAL})=")


def differences(path: str, old: str, new: str) -> list[str]:
    """The lines of a unified diff from ``old`` to ``new``; none when they are equal.

    For a secret they only say that it has changed.
    """
    before, after = _entries(old), _entries(new)
    lines = difflib.unified_diff(
        _shown(before, after, "old"), _shown(after, before, "new"), f"{path} (old)", f"{path} (new)", n=0, lineterm=""
    )
    return list(lines)


def _entries(text: str) -> list[str]:
    """The lines of a text; a quoted assignment over several lines is one entry."""
    return re.findall(r"(?:[ \t]*(?:export[ \t]+)?\w+=(?:'[^']*'|\"(?:\\[\s\S]|[^\"\\])*\").*|.*)\n|.+\Z", text)


def _shown(entries: list[str], others: list[str], which: str) -> list[str]:
    known = set(others)
    return [_masked(entry, "" if entry in known else f" ({which})").rstrip("\n") for entry in entries]


def _masked(entry: str, mark: str) -> str:
    if mentioned := _MENTIONED.search(entry):
        start = _WRITTEN.match(entry)
        return f"{start[0] if start else f'{mentioned[0]} '}****{mark}"
    return f"{SALT}****{mark}" if entry.startswith(SALT) else entry
