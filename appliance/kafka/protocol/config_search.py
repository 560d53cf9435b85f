"""Search for the topic settings that a cluster accepts: the next question, from the answers so far; pure.

A policy of the brokers (KIP-108), like their own check of values, refuses a topic as a whole, with a text for people.
So all settings are tried together first, then the required ones alone, and then the others one by one, each with the
settings accepted before.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ask:
    """The next question: are these settings accepted together?"""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settled:
    """The accepted settings, and the reason for each refused one."""

    keys: tuple[str, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Refused:
    """The reason that even the required settings are refused."""

    why: str


def next_step(wanted: Sequence[str], required: Collection[str], answers: Sequence[str]) -> Ask | Settled | Refused:
    """The next question about ``wanted`` settings, or the end.

    ``answers`` to the questions so far are the reasons of refusals, or nothing if accepted.
    """
    kept = tuple(key for key in wanted if key in required)
    others = [key for key in wanted if key not in required]
    match answers:
        case []:
            return Ask(tuple(wanted))
        case [""]:
            return Settled(tuple(wanted), {})
        case [_]:
            return Ask(kept)
        case [_, why, *_] if why:
            return Refused(why)
    left_out = {}
    for key, why in zip(others, answers[2:], strict=False):
        if why:
            left_out[key] = why
        else:
            kept += (key,)
    asked = len(answers) - 2
    return Ask((*kept, others[asked])) if asked < len(others) else Settled(kept, left_out)
