"""The source topics that a link copies, as it tells those that share copies with it."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkTopics:
    """The topics that ``regex`` matches, without those that one of ``excluded`` matches; an empty ``regex``: all."""

    regex: str = ""
    excluded: tuple[str, ...] = ()

    def may_take(self, topic: str) -> bool:
        """False if the link does not copy topics of that name; True where a regex has another release's syntax."""
        wanted = not self.regex or _matches(self.regex, topic, otherwise=True)
        return wanted and not any(_matches(each, topic, otherwise=False) for each in self.excluded)


ALL_TOPICS = LinkTopics()
"""The topics of a link that does not tell them: it may copy any."""


def _matches(regex: str, topic: str, *, otherwise: bool) -> bool:
    try:
        return re.fullmatch(regex, topic) is not None
    except re.error:
        return otherwise
