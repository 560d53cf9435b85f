"""``appliance order run``: the process of an order beside one cluster.

With the arguments of kdsync, ``N BROKERS TOPIC``, it does the work of those beside N clusters: a try on one machine.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import re
import socket
import uuid
from collections.abc import Callable, Iterator
from functools import partial

from appliance.clock import now_ms
from appliance.commands.order.pages import OrderPages
from appliance.engine.problem_log import Notice, ProblemLog, to_log, until_answered
from appliance.errors import ApplianceError, SettingsError
from appliance.kafka.client.interface import Cluster
from appliance.link.client.checkpoint_log import NewestStates
from appliance.link.client.clusters import order_cluster
from appliance.link.client.membership import membership
from appliance.link.client.standing_by import while_active
from appliance.link.model.checkpoint import Owner
from appliance.link.model.problems import STANDBY
from appliance.order.names import order_naming
from appliance.order.process import OrderProcess
from appliance.order.topics import Order
from appliance.runtime import log as logs
from appliance.runtime.background import unless_stopped
from appliance.runtime.command import Command
from appliance.settings.engine import OnGap
from appliance.settings.env_file import read_order
from appliance.settings.order import OrderSettings, parse_order
from appliance.settings.role import Role
from appliance.spark.tempdir import tempdir

log = logging.getLogger("appliance.replicator")

_LANES = 1
"""Lanes of a new order with LANES=0: a process is one thread, and each lane has transactions of its own."""


def order_of(settings: OrderSettings) -> Order:
    """The order that these settings describe."""
    engine = settings.engine
    return Order(
        tuple(each.id for each in settings.clusters),
        settings.home,
        order_naming(settings.topics_regex),
        engine.lanes or _LANES,
        single=settings.partitions == 1,
        alone=settings.alone,
        records_gaps=engine.on_gap is OnGap.RECORD,
        replication_factor=settings.topics.replication_factor,
        commit_bytes=engine.commit_bytes,
        commit_interval=engine.commit_interval,
        transaction_timeout=engine.transaction_timeout,
        discovery_seconds=engine.discovery_seconds,
    )


async def _run(parsed: argparse.Namespace, stopping: asyncio.Event) -> None:
    """Run the process beside the own cluster, or those of all clusters of a try."""
    tried = [parsed.instances, parsed.brokers, parsed.topic]
    if parsed.instances is None:
        beside = [read_order(parsed.env_file, Role.REPLICATOR, os.environ)]
    elif None in tried:
        raise SettingsError(["expected all of N, BROKERS and TOPIC, or none of them"])
    else:
        beside = list(_tried(parsed.instances, parsed.brokers, parsed.topic))
    logs.configure(beside[0].log)
    pages = [OrderPages() for _ in beside]
    try:
        async with pages[0].served(beside[0]), asyncio.TaskGroup() as running:
            for settings, own in zip(beside, pages, strict=True):
                notice = to_log if len(beside) == 1 else partial(_of_cluster, settings.cluster)
                work = run_beside(settings, notice, stopping, own.began)
                running.create_task(work, name=f"order {settings.cluster}")
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures


def _tried(instances: str, brokers: str, topic: str) -> Iterator[OrderSettings]:
    """The settings beside each cluster of a try; the environment may have more, such as LOG_LEVEL."""
    lists = brokers.split(";")
    if instances != str(len(lists)):
        expected = "expected the brokers of so many clusters, with ; between two of them"
        raise SettingsError([f"{instances} {brokers}: {expected}"])
    names = [f"cluster-{number}" for number in range(1, len(lists) + 1)]
    own = {f"CLUSTER_{number}_BROKER_SERVERS": each for number, each in enumerate(lists, 1)}
    plain = {f"CLUSTER_{number}_SECURITY_PROTOCOL": "PLAINTEXT" for number in range(1, len(lists) + 1)}
    order = {
        "GLOBAL_CLUSTERS": ",".join(names),
        "GLOBAL_HOME": names[0],
        "GLOBAL_TOPICS_REGEX": re.escape(topic),
        "GLOBAL_ROUTE": "direct",
    }
    for name in names:
        yield parse_order({**plain, **os.environ, **own, **order, "GLOBAL_CLUSTER": name}, Role.REPLICATOR)


def _of_cluster(cluster: str, subject: str, error: ApplianceError | None) -> None:
    to_log(f"{cluster}: {subject}", error)


async def run_beside(
    settings: OrderSettings,
    notice: Notice,
    stopping: asyncio.Event,
    begins: Callable[[OrderProcess], None] = lambda _: None,
) -> None:
    """Order in one cluster until ``stopping``, or stand by while another process does; ``begins`` gets each process."""
    order, problems = order_of(settings), ProblemLog(notice)
    async with contextlib.AsyncExitStack() as stack:
        clusters = {
            each.id: await stack.enter_async_context(order_cluster(settings, each.id)) for each in settings.clusters
        }
        ask = partial(_owner, clusters[settings.cluster], order)

        async def run(ending: asyncio.Event) -> None:
            owner = await unless_stopped(ending, until_answered(ask, settings.cluster, problems))
            if owner is not None:
                fields = {"cluster": settings.cluster, "clusters": ",".join(order.clusters), "lanes": order.lanes}
                log.info("order begins", extra={"fields": fields})
                process = OrderProcess(order, settings.cluster, clusters, owner, notice)
                begins(process)
                await process.run(ending)

        at = stack.enter_context(tempdir(f"{order.naming.replicator}-{settings.cluster}")).name
        member = membership(clusters[settings.cluster], order.naming.replicator, at, partial(problems.note, STANDBY))
        dialled = asyncio.gather(*(each.metadata([]) for each in clusters.values()), return_exceptions=True)
        dialled.add_done_callback(lambda _: member.tell_ready())  # some may be down
        await while_active(member, stopping, run)


async def _owner(cluster: Cluster, order: Order) -> Owner:
    """The name of this run, which is newer than all that have left theirs."""
    checkpoints = await NewestStates(cluster, order.naming).checkpoints()
    newest = max((each.owner.generation for each in checkpoints if each.owner), default=0)
    return Owner(uuid.uuid4().hex[:12], "order", socket.gethostname(), now_ms(), newest + 1)


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("instances", nargs="?", metavar="N", help="for a try on one machine: the number of clusters")
    command.add_argument("brokers", nargs="?", metavar="BROKERS", help="the brokers of each, with ; between clusters")
    command.add_argument("topic", nargs="?", metavar="TOPIC", help="the topic to order")


RUN = Command(
    "Runs the process beside the cluster GLOBAL_CLUSTER, which writes T-global there. It may be killed at any time and "
    "started anywhere: all that it knows is stored in that cluster. With N, BROKERS and TOPIC it needs no settings, "
    "and does the work of the processes beside N clusters, for a try on one machine.",
    _run,
    _add_options,
)
