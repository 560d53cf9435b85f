"""The settings of the groups whose offsets follow to the destination."""

import re
from dataclasses import dataclass
from typing import Annotated

from appliance.settings.parsers import regexes, seconds
from appliance.settings.variable import Variable


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The groups whose offsets are translated and committed at the destination; times in seconds.

    ``regex`` and ``exclude_regex`` match whole names; "" matches no group.
    """

    regex: Annotated[
        str,
        Variable(
            "REPLICA_GROUPS_REGEX",
            "Groups whose offsets follow: regular expressions for whole names, comma separated; empty: none.",
            regexes,
        ),
    ]
    exclude_regex: Annotated[
        str,
        Variable(
            "REPLICA_GROUPS_EXCLUDE_REGEX",
            "Groups to leave out, though they match: regular expressions, comma separated.",
            regexes,
            "console-consumer-.*,connect-.*,__.*",
        ),
    ]
    sync_seconds: Annotated[
        float,
        Variable(
            "GROUPS_SYNC_SECONDS",
            "Time between two looks at the offsets of groups.",
            seconds(0.1, 3600),
            "5",
        ),
    ]

    @property
    def wanted(self) -> bool:
        """True when any group is to follow."""
        return bool(self.regex)

    def takes(self, group: str) -> bool:
        """True when the offsets of a group of that name are to follow."""
        return bool(
            self.regex and re.fullmatch(self.regex, group) and not re.fullmatch(self.exclude_regex or "(?!)", group)
        )
