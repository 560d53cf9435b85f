"""Records written by several transactional producers at once, whose transactions overlap in every partition."""

import asyncio
import itertools
from collections.abc import Iterable, Iterator, Mapping

from confluent_kafka import Producer

Record = tuple[bytes, bytes, int]
"""Value, key and partition of a record."""

_PRODUCERS = 4
_A_TRANSACTION = 1_000
_PIECES = 4
_ABORTED_OF = 5
_CALL_SECONDS = 60.0


def visible(records: int) -> int:
    """The number of committed records: every fifth transaction is aborted."""
    return sum(number // _A_TRANSACTION % _ABORTED_OF != _ABORTED_OF - 1 for number in range(records))


async def write(client: Mapping[str, str | int | bool], topic: str, records: Iterable[Record]) -> None:
    """Write the records: the producers alternate with pieces of their transactions, and then end them one after the
    other.
    """
    producers = [Producer({**client, "transactional.id": f"bench.{number}"}) for number in range(_PRODUCERS)]
    for producer in producers:
        producer.init_transactions(_CALL_SECONDS)
    transactions = _chunks(records, _A_TRANSACTION)
    for turn in itertools.count():
        together = list(zip(producers, transactions, strict=False))
        if not together:
            return
        await _write_pieces(topic, together)
        for number, (producer, _) in enumerate(together, turn * _PRODUCERS):
            aborted = number % _ABORTED_OF == _ABORTED_OF - 1
            (producer.abort_transaction if aborted else producer.commit_transaction)(_CALL_SECONDS)


async def _write_pieces(topic: str, together: list[tuple[Producer, list[Record]]]) -> None:
    for producer, _ in together:
        producer.begin_transaction()
    pieces = [_chunks(transaction, _A_TRANSACTION // _PIECES) for _, transaction in together]
    for each in itertools.zip_longest(*pieces, fillvalue=()):
        for (producer, _), piece in zip(together, each, strict=True):
            for value, key, partition in piece:
                producer.produce(topic, value, key, partition)
            producer.flush(_CALL_SECONDS)
            await asyncio.sleep(0)


def _chunks(records: Iterable[Record], size: int) -> Iterator[list[Record]]:
    source = iter(records)
    return iter(lambda: list(itertools.islice(source, size)), [])
