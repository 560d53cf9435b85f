"""The topics that a command is about, by one rule for all commands.

``--topic REGEX`` takes each topic whose whole name matches, ``--topic-name T`` the one of this name; both may be
repeated. A choice is a text with an expression in each line; the empty one takes every topic.
"""

import argparse
import re
from collections.abc import Collection
from typing import Any

from appliance.errors import SettingsError, UnknownTopic

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
            raise SettingsError([f"--topic {each}: no regular expression: {error}"]) from error
        if not found:
            raise UnknownTopic([f"--topic {each}: {where}"])
    return [topic for topic in sorted(topics) if takes(choice, topic)]
