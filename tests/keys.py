"""``python -m tests.keys``: write docs/reference/json.md, the keys of the JSON that commands print."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.key_documents import documents
from tests.key_meanings import MEANINGS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "json.md"

_HEAD = """\
# Keys of the JSON

What `--json` prints, for programs. A value that is unknown is null, never 0. Times are ISO 8601 in UTC, durations are
in the unit of the key's name. A release may add keys, and removes or renames none.
The replicator serves the keys of `status` at `/status` as well ([where](status.md#health-and-metrics)).
"""


def keys(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The path of each key that holds no other keys, with its value."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from keys(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        for below in value:
            yield from keys(below, f"{path}[]")
    else:
        yield (f"{path}[]", None) if isinstance(value, list | tuple) else (path, value)


def page() -> str:
    """The text of the page: a key without a meaning, and a meaning without a key, are refused."""
    return _HEAD + "".join(_section(command, found) for command, found in documents().items())


def _section(command: str, found: Any) -> str:
    paths = dict.fromkeys(path for path, _ in keys(found))
    meanings = MEANINGS[command]
    assert paths.keys() == meanings.keys(), (command, paths.keys() ^ meanings.keys())
    rows = "".join(f"| `{path}` | {meanings[path]} |\n" for path in paths)
    return f"\n## {command}\n\n| key | meaning |\n|---|---|\n{rows}"


if __name__ == "__main__":
    PAGE.write_text(page())
