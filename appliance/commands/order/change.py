"""``appliance order move``, ``join``, ``leave``, ``alone`` and ``resume``: wishes that the processes meet."""

import argparse
import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from appliance.clock import loop_seconds
from appliance.commands.run.operation import agree
from appliance.errors import ApplianceError, NothingToDo
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import Partition
from appliance.order.handle import OrderHandle
from appliance.order.model.shown import document
from appliance.order.model.view import OrderView
from appliance.order.model.wishes import Request, described, is_done, is_met, question, refusal, wishes
from appliance.order.pulse import wish
from appliance.output import say, say_json
from appliance.runtime.command import Command, add_json, seconds, until_stopped, with_settings_by
from appliance.settings.env_file import read_order
from appliance.settings.order_values import OrderSettings
from appliance.settings.role import Role

_LOOK, _BRIEFLY, _INSISTS = 0.25, 3.0, 10.0
"""Pause between two looks, the time in which a cluster has to answer that may not matter, and the time for which one
that does is asked again, in seconds."""


_LATER = "it may be done later: see `appliance order status`"


async def _change(
    ask: Callable[[argparse.Namespace], Request],
    settings: OrderSettings,
    parsed: argparse.Namespace,
    _: asyncio.Event,
) -> int:
    """Leave the wish in the own cluster, and wait until it is met."""
    async with OrderHandle.open(settings) as order:
        request = await _located(order, ask(parsed), settings.cluster)
        before = await _before(order, request)
        if reason := refusal(request, before):
            if parsed.json and is_met(request, before):
                say_json(json.dumps(document(before), indent=2))
            raise (NothingToDo if is_met(request, before) else ApplianceError)(f"{reason}; nothing was changed")
        if parsed.dry_run:
            say(f"would {described(request)}")
            return 0
        if (text := question(request, before)) and not parsed.yes:
            await agree(text)
        began = loop_seconds()
        await wish(order.clusters[settings.cluster], wishes(request, before, uuid.uuid4().hex))
        view = await _met(order, request, before, parsed.wait)
        if view is None:
            raise ApplianceError(f"not done within {parsed.wait:g} s; {_LATER}")
        if parsed.json:
            say_json(json.dumps(document(view), indent=2))
        else:
            homes = ", ".join(sorted({str(each.epoch) for each in view.lanes if each.epoch}))
            say(f"done after {loop_seconds() - began:.1f} s: epoch {homes}")
    return 0


async def _before(order: OrderHandle, request: Request) -> OrderView:
    """The view with all that the request needs, or without it for a while: a way may just be coming back."""
    until, view = loop_seconds() + _INSISTS, await order.view(_BRIEFLY)
    while view.unknown and refusal(request, view) and loop_seconds() < until:
        await asyncio.sleep(_LOOK)
        view = await order.view()
    return view


async def _met(order: OrderHandle, request: Request, before: OrderView, patience: float) -> OrderView | None:
    until = loop_seconds() + patience
    while loop_seconds() < until:
        if is_done(request, before, view := await order.view(without=before.unknown)):
            return view
        await asyncio.sleep(_LOOK)
    return None


async def _located(order: OrderHandle, request: Request, own: str) -> Request:
    """The request with the offsets at which origins begin, where it says no other, or for the cluster ``own``."""
    if request.verb == "gap":
        return replace(request, target=own)
    if request.verb != "resume":
        return request
    located = []
    for cluster, topic, number, offset in request.origins:
        if cluster not in order.clusters:
            raise ApplianceError(f"{cluster} is none of the clusters in GLOBAL_CLUSTERS; nothing was changed")
        origin, of = Partition(topic, number), order.clusters[cluster]
        metadata = await of.metadata([topic])
        start = (await list_offsets(of, metadata, [origin], Bound.START))[origin]
        if offset > (end := (await list_offsets(of, metadata, [origin], Bound.END))[origin]):
            raise ApplianceError(f"{origin} of {cluster} ends at offset {end}, before {offset}; nothing was changed")
        located.append((cluster, topic, number, max(start, offset)))
    return Request(request.verb, origins=tuple(located))


def _terms(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")
    add_json(command, "a line, of the order afterwards")
    command.add_argument("--yes", action="store_true", help="do not ask")
    command.add_argument("--wait", type=seconds, default=60.0, metavar="S", help="seconds to wait until it is done")


def _move_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--to", required=True, metavar="CLUSTER", help="the cluster that becomes home")
    command.add_argument("--lost", default="", metavar="IDS", help="clusters that are lost, with commas between them")
    _terms(command)


def _member_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("cluster", metavar="CLUSTER", help="the cluster, as GLOBAL_CLUSTERS names it")
    _terms(command)


def _resume_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--origin", metavar="CLUSTER", help="the cluster of the topic")
    command.add_argument("--topic-name", metavar="T", help="the topic")
    command.add_argument("--partition", type=int, metavar="N", help="its partition")
    command.add_argument("--from", dest="start", metavar="PLACE", help="an offset there, or earliest")
    gap = "instead: have this cluster's T-global go on after records that nobody has any more"
    command.add_argument("--gap", action="store_true", help=gap)
    _terms(command)


def _resumed(parsed: argparse.Namespace) -> Request:
    place = parsed.origin, parsed.topic_name, parsed.partition, parsed.start
    if parsed.gap is (None not in place) or (parsed.gap and any(each is not None for each in place)):
        raise ApplianceError("expected --origin, --topic-name, --partition and --from, or --gap alone")
    if parsed.gap:
        return Request("gap")
    if parsed.start != "earliest" and not (parsed.start.isascii() and parsed.start.isdigit()):
        raise ApplianceError(f"--from {parsed.start}: expected an offset or earliest")
    offset = 0 if parsed.start == "earliest" else int(parsed.start)
    return Request("resume", origins=((parsed.origin, parsed.topic_name, parsed.partition, offset),))


def _command(
    description: str,
    ask: Callable[[argparse.Namespace], Request],
    options: Callable[[argparse.ArgumentParser], None],
) -> Command:
    run = with_settings_by(read_order, Role.REPLICATOR, partial(_change, ask))
    return Command(description, until_stopped(run, f"stopped; {_LATER}"), options)


MOVE = _command(
    "Makes another cluster home, while all run. The home stops taking, hands over what it has, and the other one opens "
    "a new epoch. With --lost it begins at once, without the home's consent: what only a lost home knew is the loss.",
    lambda parsed: Request("move", parsed.to, tuple(filter(None, parsed.lost.split(",")))),
    _move_options,
)
JOIN = _command(
    "Makes a cluster a member, which has copied as a guest so far: it follows, acknowledges and votes from then on.",
    lambda parsed: Request("join", parsed.cluster),
    _member_options,
)
LEAVE = _command(
    "Ends a cluster's membership for ever: it acknowledges and votes no longer. Its records stay in the order.",
    lambda parsed: Request("leave", parsed.cluster),
    _member_options,
)
ALONE = _command(
    "Lets the home show what no other cluster has, until another one follows it again.",
    lambda _: Request("alone"),
    _terms,
)
RESUME = _command(
    "Goes on with an origin that has stopped, since its topic was made anew or has lost records; or with the T-global "
    "of this cluster, where nobody has the records any more that come next.",
    _resumed,
    _resume_options,
)
