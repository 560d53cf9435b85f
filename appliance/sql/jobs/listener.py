"""The SQL of a Spark task: its service for the jobs of its host, or of other hosts by a listener like the driver's."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from appliance.engine.control.assignment import Hello, Question
from appliance.engine.control.client import ControlClient, DriverEndpoint, transform_socket
from appliance.engine.control.listener import ControlListener
from appliance.engine.problem_log import Notice
from appliance.engine.task.runner import Transforming
from appliance.errors import PeerError
from appliance.settings.target import Target
from appliance.settings.values import OnTransformError
from appliance.sql.flight.service import SUBJECT, TransformService


def transforming(endpoint: DriverEndpoint, task: int, driver: ControlClient) -> Transforming | None:
    """The link's SQL, which a task serves; None if records are copied as they are."""
    if not endpoint.on_transform_error:
        return None

    @contextlib.asynccontextmanager
    async def serving(tell: Notice) -> AsyncIterator[TransformService]:
        service = TransformService(endpoint.on_transform_error == OnTransformError.STOP, tell)
        if isinstance(endpoint.at, str):
            jobs = service.serving(transform_socket(Path(endpoint.at), task))
        else:
            jobs = serving_hosts(service, task, driver, endpoint.token)
        async with jobs:
            yield service

    return serving


class TransformListener(ControlListener):
    """Passes the connections of a task's jobs to its service.

    Each begins with a hello that names the task: the port may have been that of another one before.
    """

    def __init__(self, service: TransformService, task: int, host: str, token: str) -> None:
        super().__init__(Target(host, 0), token=token, subject=SUBJECT)
        self._service = service
        self._task = task

    async def serve(self, hello: Hello | Question, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """See ``ControlListener``."""
        if not isinstance(hello, Hello) or hello.task != self._task:
            raise PeerError(f"{SUBJECT}: this is task {self._task}, and no other")
        await self._service.serve(reader, writer)


@contextlib.asynccontextmanager
async def serving_hosts(service: TransformService, task: int, driver: ControlClient, token: str) -> AsyncIterator[None]:
    """Serve a task's jobs during the block, at the address by which this host reaches the driver."""
    listener = TransformListener(service, task, driver.own_host, token)
    listener.start()
    try:
        at = listener.address
        assert isinstance(at, Target)
        driver.report(at)
        yield
    finally:
        await listener.close()
