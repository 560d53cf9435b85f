"""The topics that a command is about, by one rule for all commands.

``--topic REGEX`` takes each topic whose whole name matches, ``--topic-name T`` the one of this name; both may be
repeated. A choice is a text with an expression in each line; the empty one takes every topic.
"""

import argparse
import re
from collections.abc import Collection
from typing import Any

from appliance.errors import SettingsError, UnknownTopic
from appliance.listing import some

_BY_NAME = "--topic-name"


def add_topic_options(command: argparse.ArgumentParser, help: str = "only these source topics; repeatable") -> None:  # noqa: A002
    """Declare both options, whose choice is ``topic``."""
    of_one = "the same for one topic, by its name"
    command.add_argument("--topic", default="", action=_Further, metavar="REGEX", help=help)
    command.add_argument(_BY_NAME, dest="topic", default="", action=_Further, metavar="T", help=of_one)


class _Further(argparse.Action):
    def __call__(self, _: Any, namespace: argparse.Namespace, value: Any, __: Any = None) -> None:
        if not value:  # of a script's unset variable: not the whole link
            text = "expected a topic, got an empty text: leave the option out for all topics"
            raise argparse.ArgumentError(self, text)
        before = getattr(namespace, self.dest)
        expression = re.escape(value) if _BY_NAME in self.option_strings else value
        setattr(namespace, self.dest, f"{before}\n{expression}" if before else expression)


def takes(choice: str, topic: str) -> bool:
    """True if the choice takes the topic."""
    return not choice or any(re.fullmatch(each, topic) for each in choice.split("\n"))


def among(choice: str, topics: Collection[str], where: str = "no topic of this link is called so") -> list[str]:
    """Those of the topics that the choice takes; UnknownTopic if an expression of it takes none."""
    for each in filter(None, choice.split("\n")):
        try:
            found = any(re.fullmatch(each, topic) for topic in topics)
        except (re.error, OverflowError, RecursionError) as error:
            raise SettingsError([f"{options_of(each)}: no regular expression: {error}"]) from error
        if not found:
            raise UnknownTopic([f"{options_of(each)}: {where}"])
    return [topic for topic in sorted(topics) if takes(choice, topic)]


def require_names(choice: str, topics: Collection[str], where: str) -> None:
    """Refuse a choice of which an expression takes more than the topic that it names, or names none."""
    for each in filter(None, choice.split("\n")):
        if (taken := among(each, topics, where)) != [_name(each)]:
            names = some([f"{_BY_NAME}={topic}" for topic in taken])
            raise SettingsError([f"{options_of(each)}: positions are moved of topics by name: {names}"])


def options_of(choice: str) -> str:
    """The options that make this choice."""
    return " ".join(
        f"--topic {each}" if (name := _name(each)) == each else f"{_BY_NAME}={name}" for each in choice.split("\n")
    )


def _name(expression: str) -> str:
    """The name that an expression of ``--topic-name`` stands for; of another one the expression."""
    name = re.sub(r"\\(.)", r"\1", expression)
    return name if re.escape(name) == expression else expression
