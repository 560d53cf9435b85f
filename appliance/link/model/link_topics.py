"""The source topics that a link copies, as it tells those that share copies with it."""

import functools
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkTopics:
    """The topics that ``regex`` matches, without those that one of ``excluded`` matches; an empty ``regex``: all."""

    regex: str = ""
    excluded: tuple[str, ...] = ()

    def may_take(self, topic: str) -> bool:
        """False if the link does not copy topics of that name; True where a regex cannot be read, or not quickly."""
        wanted = not self.regex or _matches(self.regex, topic, otherwise=True)
        return wanted and not any(_matches(each, topic, otherwise=False) for each in self.excluded)


ALL_TOPICS = LinkTopics()
"""The topics of a link that does not tell them: it may copy any."""


_REPEATED = re.compile(r"[*+{]|(?<!\()\?")
_NOT_FOR_PYTHON = re.compile(r"\)[*+{]|\s|(\|[^|]*){4}")


@functools.lru_cache(maxsize=10_000)
def _matches(regex: str, topic: str, *, otherwise: bool) -> bool:
    """True if another link's regex matches, by Python if it repeats little, else by RE2, which never backtracks."""
    try:
        if len(_REPEATED.findall(regex)) <= 2 and not _NOT_FOR_PYTHON.search(regex):
            return re.fullmatch(regex, topic) is not None
        import pyarrow.compute as pc  # large, and seldom needed

        match = pc.match_substring_regex(topic, rf"\A(?:{regex})\z").as_py()
        return otherwise if "{," in regex or "[[" in regex else match is True  # Python reads these in another way
    except (re.error, ValueError, OverflowError, RecursionError):
        return otherwise
