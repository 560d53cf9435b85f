"""The interface of a contender: it copies the load from one cluster to the other."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from bench.lib.clusters import Pair
from bench.lib.filling import Load
from testbed.process import OwnedProcess


@dataclass(frozen=True, slots=True)
class Copying:
    """A newly started program, and the topic at the destination for its copy."""

    process: OwnedProcess
    topic: str


Copier = Callable[[Pair, Load, str], AbstractAsyncContextManager[Copying]]
"""A context in which a program copies the load. The text names the link, which is new and independent of all others."""
