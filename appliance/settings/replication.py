"""The settings of the replicator: the topics that it copies, its engine, and its console."""

import enum
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from appliance.settings.monitoring import MonitoringSettings
from appliance.settings.parsers import (
    address,
    choice,
    listening_target,
    matching,
    milliseconds,
    regex,
    regexes,
    replication_factor,
    seconds,
    topic_name,
    topic_suffix,
    topics_regex,
    whole,
    yes_or_no,
)
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.variable import Variable

_BOUND_TO_A_CLUSTER = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "min.insync.replicas",
    "unclean.leader.election.enable",
)
"""Settings of topics that mean nothing in another cluster, as MirrorMaker 2 has it."""


_OF_OTHER_PROGRAMS = ("__.*", r".*[-.]internal", r".*\.replica", r".*\.checkpoints\..*", "heartbeats")
"""Topics of Kafka, MirrorMaker 2, Kafka Connect, and of their kind: MirrorMaker 2 leaves them out too."""


class Start(enum.StrEnum):
    """The place where the copy of a partition begins when the link is new."""

    EARLIEST = "earliest"
    LATEST = "latest"


class TopicNaming(enum.StrEnum):
    """The way in which a copy gets its name."""

    SUFFIX = "suffix"
    GLOBAL = "global"
    PREFIX = "prefix"
    EXACT = "exact"
    IDENTICAL = "identical"


class OnGap(enum.StrEnum):
    """The reaction if the source no longer holds the next record."""

    STOP = "stop"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The topics that are copied, and the names and properties of their copies."""

    regex: Annotated[
        str,
        Variable(
            "REPLICA_TOPICS_SOURCE_REGEX",
            "Topics to copy: a regular expression that matches the whole name.",
            topics_regex,
            default=None,
        ),
    ]
    suffix: Annotated[
        str,
        Variable(
            "REPLICA_TOPICS_DEST_SUFFIX",
            "Suffix of a copy's name: copy makes topic.copy of topic.",
            topic_suffix,
            default=None,
        ),
    ]
    naming: Annotated[
        TopicNaming,
        Variable(
            "REPLICA_TOPICS_NAMING",
            "Kind of a copy's name: suffix, prefix, global, exact or identical (docs/names.md).",
            choice(TopicNaming),
            "suffix",
        ),
    ]
    name: Annotated[
        str,
        Variable(
            "REPLICA_TOPICS_DEST_NAME",
            "Name of the copy with REPLICA_TOPICS_NAMING=exact; REPLICA_TOPICS_SOURCE_REGEX is then a topic's name.",
            topic_name,
        ),
    ]
    separator: Annotated[
        str,
        Variable(
            "REPLICA_TOPICS_SEPARATOR",
            "Characters between a topic's name and the suffix or prefix.",
            matching(r"[._-]{1,10}", "at most 10 of the characters . _ -"),
            ".",
        ),
    ]
    exclude_regex: Annotated[
        str,
        Variable(
            "REPLICA_TOPICS_EXCLUDE_REGEX",
            "Matching topics that are not copied: a regular expression for the whole name; empty: none.",
            regex,
        ),
    ]
    fan_in: Annotated[
        bool,
        Variable(
            "REPLICA_FAN_IN",
            "Several links write the same copies on purpose: yes or no; all of them must say so.",
            yes_or_no,
            "no",
        ),
    ]
    one_writer: Annotated[
        bool,
        Variable(
            "REPLICA_ONE_WRITER_PER_KEY",
            "Copy compacted topics to shared copies, since each key is written in one cluster only: yes or no.",
            yes_or_no,
            "no",
        ),
    ]
    internal_regex: Annotated[
        str,
        Variable(
            "REPLICA_TOPICS_INTERNAL_REGEX",
            "Topics in which other programs keep their state, not copied either: regular expressions; (?!): none.",
            regexes,
            ",".join(_OF_OTHER_PROGRAMS),
        ),
    ]
    start: Annotated[
        Start,
        Variable(
            "REPLICA_TOPICS_START",
            "Start of a partition's copy when the link is new: earliest or latest.",
            choice(Start),
            "earliest",
        ),
    ]
    replication_factor: Annotated[
        int,
        Variable(
            "REPLICATION_FACTOR",
            "Replication factor of new topics at the destination; -1: its brokers' default.",
            replication_factor,
            "-1",
        ),
    ]
    follows_configs: Annotated[
        bool,
        Variable(
            "CONFIGS_SYNC",
            "Set on a copy what is set on its source topic, whenever that changes: yes, or no for new copies only.",
            yes_or_no,
            "yes",
        ),
    ]
    configs_exclude_regex: Annotated[
        str,
        Variable(
            "CONFIGS_EXCLUDE_REGEX",
            "Settings of topics that copies do not get: regular expressions for whole names, comma separated.",
            regexes,
            ",".join(_BOUND_TO_A_CLUSTER),
        ),
    ]
    follows_acls: Annotated[
        bool,
        Variable(
            "ACLS_SYNC",
            "Let the readers of a source topic read its copy, as the source's ACLs change: yes or no.",
            yes_or_no,
            "no",
        ),
    ]

    @property
    def shared(self) -> bool:
        """True if others than this link may write to its copies."""
        return self.fan_in or self.naming is TopicNaming.IDENTICAL

    @property
    def syncs_configs(self) -> bool:
        """True if copies get what changes at their sources; shared ones would be changed by each link in turn."""
        return self.follows_configs and not self.shared

    def configs_to_follow(self, set_at_source: Mapping[str, str]) -> dict[str, str]:
        """Those of a source topic's settings that its copy gets."""
        excluded = re.compile(self.configs_exclude_regex or "(?!)")
        return {key: value for key, value in set_at_source.items() if not excluded.fullmatch(key)}


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The replicator's engine; times in seconds, sizes in bytes.

    ``spark_secret`` is the Spark cluster's. A ``spark_driver_host`` of "" means the address by which Spark's master is
    reached.
    """

    on_gap: Annotated[
        OnGap,
        Variable(
            "ON_GAP",
            "Reaction to a source that no longer holds the next record: stop, or record the gap and go on.",
            choice(OnGap),
            "stop",
        ),
    ]
    lanes: Annotated[
        int,
        Variable(
            "LANES",
            "Lanes (transactional ids that copy in parallel) of a new link; 0: one for each task.",
            whole(0, 1000),
            "0",
        ),
    ]
    tasks: Annotated[
        int,
        Variable("TASKS", "Number of Spark tasks; 0: one for each core of this host.", whole(0, 1000), "0"),
    ]
    summary_seconds: Annotated[
        float,
        Variable(
            "SLICE_SECONDS",
            "Seconds between two log lines with the records that each task has copied.",
            seconds(1, 3600),
            "60",
        ),
    ]
    discovery_seconds: Annotated[
        float,
        Variable(
            "DISCOVERY_SECONDS",
            "Seconds between two searches for new topics and partitions.",
            seconds(0.1, 3600),
            "3",
        ),
    ]
    commit_interval: Annotated[
        float,
        Variable(
            "COMMIT_INTERVAL_MS",
            "Longest time for which a transaction gathers records, in milliseconds.",
            milliseconds(1, 60_000),
            "25",
        ),
    ]
    commit_bytes: Annotated[
        int,
        Variable(
            "COMMIT_BYTES",
            "Size at which a transaction commits before that time, in bytes.",
            whole(2**16, 2**30),
            str(2**24),
        ),
    ]
    max_bytes_per_second: Annotated[
        int,
        Variable(
            "MAX_BYTES_PER_SECOND",
            "Most bytes of records read from the source in a second; 0: no bound. Changes need no restart.",
            whole(0, 2**40),
            "0",
        ),
    ]
    transaction_timeout: Annotated[
        float,
        Variable(
            "TRANSACTION_TIMEOUT_SECONDS",
            "Seconds after which the destination aborts the open transaction of a dead lane.",
            seconds(1, 900),
            "60",
        ),
    ]
    spark_master: Annotated[
        str,
        Variable(
            "SPARK_MASTER",
            "Spark master of the tasks: local[*], spark://host:port or k8s://url.",
            matching(
                r"local(\[([0-9]+|\*)(,[0-9]+)?\])?|(spark|k8s)://\S+", "local[*], spark://host:port or k8s://url"
            ),
            "local[*]",
        ),
    ]
    spark_secret: Annotated[
        Secret,
        Variable(
            "SPARK_AUTHENTICATE_SECRET",
            "The shared secret of a Spark cluster; required with spark://host:port.",
            Secret,
            confidential=True,
        ),
    ]
    spark_driver_host: Annotated[
        str,
        Variable(
            "SPARK_DRIVER_HOST",
            "Address at which the Spark cluster reaches this host; empty: the one from which it reaches SPARK_MASTER.",
            address,
        ),
    ]
    spark_driver_port: Annotated[
        int,
        Variable(
            "SPARK_DRIVER_PORT",
            "First of the three ports there that the Spark cluster dials; 0: any three.",
            whole(0, 65_533),
            "0",
        ),
    ]
    spark_driver_memory: Annotated[
        str,
        Variable(
            "SPARK_DRIVER_MEMORY",
            "Heap of the Spark driver's JVM.",
            matching(r"[1-9][0-9]*[mMgG]", "a size such as 512m or 2g"),
            "512m",
        ),
    ]
    monitoring: MonitoringSettings

    @property
    def in_a_cluster(self) -> bool:
        """True if tasks run on other hosts than the driver's."""
        return not self.spark_master.startswith("local")

    @property
    def task_count(self) -> int:
        """The number of tasks that copy at once: as set, else one for each core."""
        return self.tasks or os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The address that serves the replicator's health, metrics and status; port 0 is any free one."""

    listen: Annotated[
        Target,
        Variable(
            "CONSOLE_LISTEN",
            "Address, host:port, of /health, /metrics and /status, which need no login. Port 0: a free one.",
            listening_target,
            "127.0.0.1:8080",
        ),
    ]
