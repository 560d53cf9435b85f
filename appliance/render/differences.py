"""What a file's new text changes in its old one, fit to be shown: without a secret."""

import difflib
import re

from appliance.render.container import SALT
from appliance.settings.variables import TABLE

_CONFIDENTIAL = {variable.name for variable in TABLE if variable.confidential}
_ASSIGNMENT = re.compile(r"export (\w+)=(.*)\n", re.DOTALL)


def differences(path: str, old: str, new: str) -> list[str]:
    """The lines of a unified diff from ``old`` to ``new``; none when they are equal.

    Of a secret it says no more than that it has changed.
    """
    before, after = _entries(old), _entries(new)
    lines = difflib.unified_diff(
        _shown(before, after, "old"), _shown(after, before, "new"), f"{path} (old)", f"{path} (new)", n=0, lineterm=""
    )
    return list(lines)


def _entries(text: str) -> list[str]:
    """The lines; an assignment in quotes that goes over several is one entry."""
    return re.findall(r"(?:export \w+=(?:'[^']*'|\"(?:\\[\s\S]|[^\"\\])*\").*|.*)\n|.+\Z", text)


def _shown(entries: list[str], others: list[str], which: str) -> list[str]:
    known = set(others)
    return [_masked(entry, "" if entry in known else f" ({which})").rstrip("\n") for entry in entries]


def _masked(entry: str, mark: str) -> str:
    assignment = _ASSIGNMENT.fullmatch(entry)
    if assignment and assignment[1] in _CONFIDENTIAL:
        return f"export {assignment[1]}=****{mark}"
    return f"{SALT}****{mark}" if entry.startswith(SALT) else entry
