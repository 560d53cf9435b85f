"""The SQL of one process that verifies: it serves ranges to the Spark jobs that evaluate the statements.

It serves a statement's jobs from the first range on that it needs of it: until then that statement has no job, and no
processes of Spark's.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from appliance.engine.model.ranges import Outcome, Range
from appliance.errors import ApplianceError, PartitionStopped, ProcessFailed
from appliance.link.model.link_sql import LinkSql
from appliance.runtime.background import unless_stopped
from appliance.sql.flight.service import TransformService
from appliance.verify.partition_sql import ServedSql

_FAILURES = 20
"""Jobs that fail in a row, for another reason than a record, until there is no hope: a record that ends a job is found
by a dozen of them.
"""


class SqlService:
    """Evaluates the statements of ``sql``; ``serving`` makes one."""

    def __init__(self, sql: ServedSql, connections: contextlib.AsyncExitStack) -> None:
        self._sql = sql
        self._connections = connections
        self._services: dict[LinkSql, TransformService] = {}
        self._one = asyncio.Lock()
        self._hopeless = asyncio.Event()
        self._reason: ApplianceError | None = None
        self._failures = 0

    async def evaluate(self, statement: LinkSql, each: Range) -> Outcome:
        """The outcome of a range by a statement."""
        if why := self._sql.refused.get(statement):
            raise PartitionStopped(f"records from offset {each.start} on {why}")
        async with self._one:
            service = self._services.get(statement) or await self._begun(statement)
        outcomes = await unless_stopped(self._hopeless, service.transform([each]))
        if outcomes is None:
            raise ProcessFailed(str(self._reason)) from self._reason
        return outcomes[0]

    async def _begun(self, statement: LinkSql) -> TransformService:
        service = TransformService(stops=False, tell=self._tell, explains=False)
        await self._connections.enter_async_context(service.serving(self._sql.sockets[statement]))
        self._services[statement] = service
        return service

    def _tell(self, _: str, error: ApplianceError | None) -> None:
        self._failures = self._failures + 1 if error else 0
        if error and self._failures >= _FAILURES:
            self.give_up(error)

    def give_up(self, reason: ApplianceError) -> None:
        """Evaluate nothing any more: whoever waits gets the reason."""
        self._reason = reason
        self._hopeless.set()


@contextlib.asynccontextmanager
async def serving(sql: ServedSql) -> AsyncIterator[SqlService]:
    """The service, while the block runs."""
    async with contextlib.AsyncExitStack() as connections:
        yield SqlService(sql, connections)
