"""Fetch at the brokers: sessions (KIP-227), long polls, committed data up to the last stable offset, or all."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kio.schema.errors import ErrorCode

from appliance.errors import ApplianceError
from appliance.kafka.client.fetch import EpochEnd, FetchAnswer, FetchedPartition, FetchExchange, WantedPartition
from appliance.kafka.client.offsets import Partition
from appliance.kafka.protocol.answer import failure
from tests.simulation.brokers import Brokers
from tests.simulation.log import Log
from tests.simulation.loop import SimulatedLoop

_NOTHING = memoryview(b"")
_NONE = ErrorCode.none


@dataclass(slots=True)
class _Session:
    id: int
    epoch: int
    wanted: dict[Partition, WantedPartition]


class Fetching:
    """The Fetches of one connection, one at a time."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._session: _Session | None = None
        self._last = 0

    def fetch(self, exchange: FetchExchange, node: int, loop: SimulatedLoop, reply: Callable[[Any], None]) -> None:
        """Answer at once, or when there is something, or when the wait is over."""
        try:
            wanted, in_session = self._wanted(exchange)
        except ApplianceError as error:
            reply(error)
            return
        session_id = self._session.id if in_session and self._session else 0
        partial = in_session and exchange.session.epoch != 0
        limit = exchange.limits.response_bytes

        def answer(final: bool) -> FetchAnswer | None:
            found, left = [], limit
            for each in wanted:
                fetched = self._read(each, node, max(1, min(each.size, left)), exchange)
                left -= len(fetched.records)
                has_news = bool(fetched.records) or fetched.error is not _NONE or fetched.diverges is not None
                if has_news or not partial:
                    found.append((has_news, fetched))
            if not final and not any(has_news for has_news, _ in found):
                return None
            return FetchAnswer(session_id, [fetched for _, fetched in found])

        now = answer(exchange.limits.wait <= 0 or self._brokers.refusal is not None)
        if now is not None:
            reply(now)
            return
        awaited = {each.partition for each in wanted}
        done = False

        def look(log: Log | None) -> None:
            nonlocal done
            if done or (log is not None and (log.topic, log.number) not in awaited):
                return
            found = answer(log is None)
            if found is not None:
                done = True
                self._brokers.grown.remove(look)
                timer.cancel()
                reply(found)

        self._brokers.grown.append(look)
        timer = loop.at(loop.time() + exchange.limits.wait, loop.world, look, None)

    def _wanted(self, exchange: FetchExchange) -> tuple[list[WantedPartition], bool]:
        identity, epoch = exchange.session
        if epoch == -1:
            return list(exchange.wanted), False
        if epoch == 0:
            self._last += 1
            self._session = _Session(self._last, 1, {each.partition: each for each in exchange.wanted})
            return list(exchange.wanted), True
        session = self._session
        if session is None or session.id != identity:
            raise failure(ErrorCode.fetch_session_id_not_found, "fetch")
        if session.epoch != epoch:
            raise failure(ErrorCode.invalid_fetch_session_epoch, "fetch")
        session.epoch += 1
        for each in exchange.forgotten:
            session.wanted.pop(each.partition, None)
        for each in exchange.wanted:
            session.wanted[each.partition] = each
        return list(session.wanted.values()), True

    def _read(self, wanted: WantedPartition, node: int, size: int, exchange: FetchExchange) -> FetchedPartition:
        partition = wanted.partition
        topic, log = self._brokers.topics.get(partition[0]), self._brokers.log(partition)
        code, end, stable_end = self._brokers.read_to(log, node, wanted.leader_epoch)
        if exchange.by_id and topic is not None and topic.id != wanted.topic_id:
            code = ErrorCode.unknown_topic_id
        if code is not _NONE or log is None:
            return FetchedPartition(partition, code, _NOTHING, (), -1, None)
        if wanted.last_epoch >= 0:
            epoch, epoch_end = log.epoch_end(wanted.last_epoch)
            if epoch < wanted.last_epoch or epoch_end < wanted.position:
                return FetchedPartition(partition, _NONE, _NOTHING, (), stable_end, EpochEnd(epoch, epoch_end))
        if not log.start <= wanted.position <= end:
            return FetchedPartition(partition, ErrorCode.offset_out_of_range, _NOTHING, (), -1, None)
        committed = exchange.limits.committed
        data, aborted = log.read(wanted.position, size, stable_end if committed else end)
        aborted = aborted if committed else ()
        return FetchedPartition(partition, _NONE, memoryview(data), aborted, stable_end, None)
