"""The settings of what Spark shows of its work: its page, its event log."""

import re
from dataclasses import dataclass
from typing import Annotated

from appliance.settings.parsers import whole, yes_or_no
from appliance.settings.variable import Variable


def _folder(value: str) -> str:
    if value and not re.match(r"/|[a-z][a-z0-9+.-]*://?\S", value):
        raise ValueError("expected an absolute path, or a URL that Hadoop knows, such as s3a://bucket/folder")
    return value


@dataclass(frozen=True, slots=True)
class MonitoringSettings:
    """``ui_port`` is the first to try, 0 for any; ``event_log`` is empty if there is none."""

    ui: Annotated[
        bool,
        Variable(
            "SPARK_UI",
            "Serve Spark's page on 127.0.0.1 while the replicator runs: yes or no.",
            yes_or_no,
            "no",
        ),
    ]
    ui_port: Annotated[
        int,
        Variable(
            "SPARK_UI_PORT",
            "Port of Spark's page; if it is taken, the next free one; 0: any.",
            whole(0, 65_500),
            "4040",
        ),
    ]
    event_log: Annotated[
        str,
        Variable(
            "SPARK_EVENT_LOG_DIR",
            "Folder of Spark's event log, for its history server: a path or a URL; empty: no log.",
            _folder,
        ),
    ]
