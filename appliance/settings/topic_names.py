"""Parsers of the names of topics and groups, and of patterns of names."""

import re

from appliance.settings.parsers import matching

TOPIC_NAME_MAX = 249
"""Characters in the name of a Kafka topic, at most."""

topic_name = matching(
    rf"((?!__|\.{{1,2}}$)[a-zA-Z0-9._-]{{1,{TOPIC_NAME_MAX}}})?",
    f"a topic's name: 1 to {TOPIC_NAME_MAX} of the characters a-z A-Z 0-9 . _ -",
)
"""A topic's name; may be empty. Names that begin with two underscores are Kafka's own, as some clients treat them."""


def topic_suffix(value: str) -> str:
    """The end of a copy's name: legal in a topic's name, with room for a dot and at least one character before it."""
    if not re.fullmatch(r"[a-zA-Z0-9._-]*", value):
        raise ValueError("expected only characters that are legal in a topic name: a-z A-Z 0-9 . _ -")
    if len(value) > TOPIC_NAME_MAX - 2:
        raise ValueError(f"expected at most {TOPIC_NAME_MAX - 2} characters: a topic name has {TOPIC_NAME_MAX} at most")
    return value


def regular_expression(value: str) -> str:
    """A regular expression in Python's grammar, which compiles it within limits."""
    try:
        re.compile(value)
    except (OverflowError, RecursionError) as error:
        raise ValueError("expected a regular expression with smaller numbers and fewer nested brackets") from error
    except re.error as error:
        where = "" if error.pos is None else f" at character {error.pos + 1}"
        raise ValueError(f"expected a regular expression: {error.msg}{where}") from error
    return value


def topics_regex(value: str) -> str:
    """A regular expression of topics' names; a comma of a list, as MirrorMaker 2 has it, would match nothing."""
    if "," in value and (parts := _split(value)) != [value]:
        wanted = "|".join(part.strip() for part in parts)
        raise ValueError(f"expected a regular expression: topics have no comma in their names; a list is {wanted}")
    return regular_expression(value)


def regexes(value: str) -> str:
    """Regular expressions, comma separated, as one that matches what any of them does; a comma in brackets is its own.

    MirrorMaker 2 lists topics and groups so.
    """
    parts = [regular_expression(part.strip()) for part in _split(value)]
    return "|".join(f"(?:{part})" for part in parts if part)


def _split(value: str) -> list[str]:
    """The text between commas that are neither escaped nor inside of brackets."""
    return re.findall(r"((?:\\.|\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|[^,])+)", value)
