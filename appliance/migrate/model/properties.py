"""The settings of another program as text: a properties file as Java reads it, or Kafka Connect's JSON.

Law: of a key that is given twice, the last value counts, as in Java. The earlier ones are named, not lost in silence.
"""

import codecs
import json
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import javaproperties

from appliance.errors import SettingsError

_STRIMZI = re.compile(rb"""^[ \t\r{]*["']?kind["']?\s*:\s*["']?KafkaMirrorMaker2\b""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Properties:
    """The values by key, in the order of the file; ``repeated`` are the keys that were given more than once."""

    values: Mapping[str, str]
    repeated: tuple[str, ...] = ()


def read_properties(name: str, content: bytes) -> Properties:
    """The properties in ``content``, in the grammar and the encoding of java.util.Properties."""
    try:
        pairs = javaproperties.loads(content, object_pairs_hook=list)
    except javaproperties.InvalidUEscapeError as error:
        raise SettingsError([f"{name}: expected four hexadecimal digits after \\u"]) from error
    return _properties(name, pairs)


def read_connector(name: str, content: bytes) -> Properties:
    """The configuration of a connector: JSON, with or without the connector's name around it, or properties."""
    if _STRIMZI.search(content):
        how = "give what its Connect answers to GET /connectors/A->B.MirrorSourceConnector (docs/move/migrating.md)"
        raise SettingsError([f"{name}: a KafkaMirrorMaker2 of Strimzi, which is not read: {how}"])
    content = content.removeprefix(codecs.BOM_UTF8)
    if not content.lstrip().startswith(b"{"):
        return read_properties(name, content)
    try:
        pairs = json.loads(content, object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise SettingsError([f"{name}: expected JSON: {error}"]) from error
    inner = dict(pairs).get("config")
    if isinstance(inner, list) and all(isinstance(pair, tuple) for pair in inner):
        pairs = [*(pair for pair in pairs if pair[0] == "name" and "name" not in dict(inner)), *inner]
    return _properties(name, [(key, _text(name, key, value)) for key, value in pairs])


def _text(name: str, key: str, value: object) -> str:
    """A value of JSON as Connect's text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if value is None:
        return ""
    raise SettingsError([f"{name}: {key}: expected a text, a number, true or false"])


def _properties(name: str, pairs: list[tuple[str, str]]) -> Properties:
    if halves := [key for key, value in pairs if re.search("[\ud800-\udfff]", key + value)]:
        raise SettingsError([f"{name}: {halves[0]!a}: expected text, got half of a pair of \\u escapes"])
    counts = Counter(key for key, _ in pairs)
    return Properties(dict(pairs), tuple(key for key, count in counts.items() if count > 1))


NOTHING = "(?!)"
"""An expression that matches no name. An empty variable would mean its default instead."""


def alternation(value: str) -> str:
    """A comma separated list of regular expressions as one.

    MirrorMaker 2 splits at every comma, also in brackets, and joins the parts by ``|``; so does this.
    """
    text = value.strip()
    return _same_in_python("|".join(re.split(r"\s*,\s*", text))) if text else NOTHING


def expression(value: str) -> str:
    """One regular expression, which may hold commas."""
    return _same_in_python(value.strip())


def names(value: str) -> str:
    """A comma separated list of names as an expression; empty for none."""
    listed = (name.strip() for name in value.split(","))
    return "|".join(re.escape(name) for name in listed if name)


def _same_in_python(text: str) -> str:
    try:
        with warnings.catch_warnings():
            # Python warns of sets within sets, which Java has and Python does not.
            warnings.simplefilter("error", FutureWarning)
            re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"Python does not read this expression: {error}") from error
    except FutureWarning as error:
        raise ValueError(f"Python reads this expression in another way than Java: {error}") from error
    return text
