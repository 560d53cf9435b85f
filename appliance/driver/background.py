"""The services beside the copying: one loop runs each of them, and tells of its faults."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError

log = logging.getLogger("appliance.replicator")

Result = TypeVar("Result")


class Service(Protocol):
    """Work beside the copying, one step after the other.

    A step that fails is an open problem with the service's name, for the log and the status, until one succeeds.
    """

    @property
    def name(self) -> str:
        """The subject of its faults."""

    @property
    def pause(self) -> float | None:
        """Seconds from the end of a step to the next one; None where one step is all."""

    def step(self) -> Awaitable[None]:
        """Work once."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A service of one function."""

    name: str
    pause: float | None
    step: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Background:
    """The running services of a replicator; a failure in one ends nothing else."""

    problems: ProblemLog
    _tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def start(self, services: Iterable[Service]) -> None:
        """Run these too, until ``stop``."""
        for service in services:
            self.task(self._run(service), service.name)

    def task(self, work: Coroutine[Any, Any, Result], name: str) -> asyncio.Task[Result]:
        """A task that ``stop`` cancels at the latest."""
        task = asyncio.create_task(work, name=name)
        self._tasks.append(task)
        return task

    async def _run(self, service: Service) -> None:
        pause: float | None = 0.0
        while pause is not None:
            try:
                await service.step()
            except ApplianceError as error:
                self.problems.tell(service.name, error)
            except Exception as error:  # a defect of ours: the work would end unnoticed
                log.debug(f"{service.name} failed", exc_info=error)
                self.problems.tell(service.name, ApplianceError(f"unexpected {type(error).__name__}: {error}"))
            else:
                self.problems.over(service.name)
            if (pause := service.pause) is not None:
                await asyncio.sleep(pause)

    async def stop(self) -> None:
        """End all of them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
