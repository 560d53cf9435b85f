"""Operators' commands as wishes: what is asked for, the reason against it, and when it is done. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from appliance.order.model.beats import Wish
from appliance.order.model.elections import enough
from appliance.order.model.rebuilding import AFTER_A_GAP
from appliance.order.model.view import LaneView, OrderView, OriginView


@dataclass(frozen=True, slots=True)
class Request:
    """A wish of an operator: the ``verb`` of the command, and its clusters; ``origins`` are those to resume.

    The verb of ``resume --gap`` is ``gap``.
    """

    verb: str
    target: str = ""
    lost: tuple[str, ...] = ()
    origins: tuple[tuple[str, str, int, int], ...] = ()


def refusal(request: Request, view: OrderView) -> str:
    """The reason that a request cannot be met as things are; empty if it can be."""
    ids, lanes = {each.id for each in view.clusters}, [each for each in view.lanes if each.epoch]
    members = {name for each in lanes for name in each.members}
    for name in (request.target, *request.lost):
        if name and name not in ids:
            return f"{name} is none of the clusters in GLOBAL_CLUSTERS: {', '.join(sorted(ids))}"
    if not lanes:
        return "no cluster has promised anything yet: start the processes first"
    if request.verb == "move":
        return _against_a_move(request, lanes, members, view.unknown)
    if request.verb == "join" and request.target in members and all(request.target in each.members for each in lanes):
        return f"{request.target} is a member already"
    if request.verb == "leave" and request.target not in members:
        return f"{request.target} is no member"
    if request.verb == "leave" and any(request.target == each.epoch.home for each in lanes if each.epoch):
        return f"{request.target} is home: `appliance order move --to` another cluster first"
    if request.verb == "leave" and any(len(each.members) <= 2 for each in lanes):
        return "an order needs two clusters"
    if request.verb == "gap":
        return "" if _gaps(request, view) else _no_gap(request.target, view)
    if request.verb == "resume" and (reason := _against_a_resume(request, view)):
        return reason
    return _silent_homes(lanes, view.unknown) if request.verb in ("join", "leave", "alone", "resume") else ""


def _against_a_move(
    request: Request, lanes: Collection[LaneView], members: Collection[str], unknown: Mapping[str, str]
) -> str:
    target = request.target
    if target not in members:
        return f"{target} is no member of the order: `appliance order join {target}`"
    if target in request.lost:
        return f"{target} cannot be lost and become home"
    if target in unknown:
        return f"{target} does not answer: {unknown[target]}"
    if all(each.epoch is not None and each.epoch.home == target for each in lanes) and not request.lost:
        return f"{target} is home already"
    if not request.lost and (silent := _silent_homes(lanes, unknown)):
        return silent
    if not all(enough({*each.members} - unknown.keys(), each.members, request.lost) for each in lanes):
        silent = ",".join(sorted({*unknown} & {*members}))
        return (
            f"too few clusters answer here to promise a new home: `appliance order move --to {target} --lost {silent}` "
            f"if {silent} is lost"
        )
    return ""


def _against_a_resume(request: Request, view: OrderView) -> str:
    origins = _origins(view)
    for cluster, topic, number, offset in request.origins:
        origin = origins.get((cluster, topic, number))
        if origin is None:
            return f"{topic}-{number} of {cluster} is no part of the order"
        if not origin.stopped and origin.next_offset is not None and origin.next_offset >= offset:
            return f"the order goes on with {topic}-{number} of {cluster} at offset {origin.next_offset} already"
    return ""


def _gaps(request: Request, view: OrderView) -> list[str]:
    """The reasons for which the target waits for ``resume --gap``."""
    parts = [part for each in view.partitions for part in each.parts if part.cluster == request.target]
    return [part.stopped for part in parts if part.stopped and AFTER_A_GAP in part.stopped]


def _no_gap(target: str, view: OrderView) -> str:
    if view.unknown:
        names = ", ".join(sorted(view.unknown))
        return f"{target} cannot tell whether nobody has the records that it lacks, while {names} does not answer"
    return f"{target} lacks no records that nobody has any more"


def _origins(view: OrderView) -> dict[tuple[str, str, int], OriginView]:
    return {
        (origin.cluster, each.topic, origin.partition): origin for each in view.partitions for origin in each.origins
    }


def _silent_homes(lanes: Collection[LaneView], unknown: Mapping[str, str]) -> str:
    homes = sorted({each.epoch.home for each in lanes if each.epoch} & unknown.keys())
    if not homes:
        return ""
    return (
        f"{homes[0]} is home and does not answer: `appliance order move --to CLUSTER --lost {homes[0]}` if it is lost"
    )


def wishes(request: Request, view: OrderView, name: str) -> Wish:
    """The wish that asks for it; ``name`` is one of its own."""
    members = tuple(sorted({each for lane in view.lanes for each in lane.members}))
    match request.verb:
        case "move":
            return Wish(name, request.target, request.lost, waits=not request.lost)
        case "join":
            return Wish(name, members=tuple(sorted({*members, request.target})))
        case "leave":
            return Wish(name, members=tuple(each for each in members if each != request.target))
        case "resume":
            return Wish(name, resumed=request.origins)
        case "gap":
            return Wish(name, request.target, gap=True)
    return Wish(name, alone=True)


def is_done(request: Request, before: OrderView, view: OrderView) -> bool:
    """True when the clusters' facts show that a request was met."""
    lanes = [each for each in view.lanes if each.epoch]
    open_now = all(each.open for each in view.partitions)
    match request.verb:
        case "move":
            newer = all(
                each.epoch and (old.epoch is None or each.epoch > old.epoch or each.epoch.home == request.target)
                for each, old in zip(lanes, before.lanes, strict=False)
            )
            return newer and open_now and all(each.epoch and each.epoch.home == request.target for each in lanes)
        case "join":
            return open_now and all(request.target in each.members for each in lanes)
        case "leave":
            return open_now and all(request.target not in each.members for each in lanes)
        case "resume":
            origins = _origins(view)
            places = [(origins.get((name, topic, number)), at) for name, topic, number, at in request.origins]
            return all(each and not each.stopped and (each.next_offset or 0) >= at for each, at in places)
        case "gap":
            return not _gaps(request, view)
    # One that says so since an older epoch shows nothing more in this one.
    return any(part.alone and part.alone == view.lanes[of.lane].epoch for of in view.partitions for part in of.parts)


def is_met(request: Request, view: OrderView) -> bool:
    """True if there is nothing to do for a request: the clusters, all of which answer, are so already."""
    is_known = any(each.epoch for each in view.lanes) and request.target in ("", *(each.id for each in view.clusters))
    is_fact = request.verb != "alone" and not request.lost and not view.unknown
    return is_known and is_fact and is_done(request, view, view)


def described(request: Request) -> str:
    """The change that a request asks for, in words."""
    match request.verb:
        case "move":
            return ", without ".join([f"move the home to {request.target}", *request.lost])
        case "join":
            return f"make {request.target} a member"
        case "leave":
            return f"end the membership of {request.target}"
        case "resume":
            places = (f"{topic}-{number} of {name} at offset {at}" for name, topic, number, at in request.origins)
            return f"go on with {', '.join(places)}"
        case "gap":
            return f"have {request.target} go on after records that nobody has any more"
    return "let the home show what no other cluster has"


def question(request: Request, view: OrderView) -> str:
    """The question that the operator has to agree to; empty where nothing can be lost."""
    answering = sorted({*request.lost} - view.unknown.keys())
    if request.verb == "move" and request.lost:
        lost = ", ".join(request.lost)
        aside = f"; {', '.join(answering)} answers: end its process first" if answering else ""
        return f"{lost} is declared lost: what it alone has shown is ordered otherwise{aside}"
    if request.verb == "alone":
        return "the home shows what no other cluster has: if it is lost then, that is ordered otherwise"
    if request.verb == "gap":
        reasons = "; ".join(reason.removesuffix(f": {AFTER_A_GAP}") for reason in _gaps(request, view))
        return f"{reasons}: the T-global of {request.target} will never have them"
    if request.verb == "resume":
        return "records of these origins before the offset will not be in the order"
    return ""
