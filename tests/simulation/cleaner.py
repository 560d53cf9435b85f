"""Log compaction, as the brokers' cleaner does it with transactions (KIP-58, KIP-98, KIP-534).

A batch keeps its base offset, its last offset and its place. One of which nothing is left stays, empty, as long as it
is its producer's newest. The records of aborted transactions go; a marker goes two rounds after the last batch of its
transaction, and a record without a value one round after the older ones of its key.
"""

import dataclasses

from appliance.kafka.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    Header,
    stamp_crc,
)
from appliance.kafka.records.records import key_and_value
from appliance.kafka.records.varint import varint
from tests.simulation.log import Entry, Log, Record, placed

_HORIZON = 1_600_000_000_000
"""The time from which on what a batch deletes may go; the times of its records count from there."""


def compact(log: Log, end: int) -> None:
    """Clean what lies below ``end``, where a batch begins that is neither undecided nor the last one."""
    cleaned = log.entries[: log.index(end)]
    committed = [each for entry in cleaned if entry.outcome and not entry.marker for each in placed(entry)]
    newest = {key_and_value(body)[0]: offset for offset, (_, body) in committed}
    last = _last(log)
    unended: set[int] = set()
    kept: list[Entry] = []
    removed: list[int] = []
    for entry in cleaned:
        is_last = last.get(entry.producer) is entry
        if entry.marker:
            left = _marker(entry, entry.producer in unended, is_last)
            if entry.producer not in unended:
                log.aborted = [done for done in log.aborted if done.marker != entry.last]
            unended.discard(entry.producer)
        else:
            left = _data(entry, newest, is_last)
            if entry.producer >= 0:
                unended.add(entry.producer)
            if entry.outcome:
                there = {offset for offset, _ in placed(left)} if left else set()
                removed += [offset for offset, _ in placed(entry) if offset not in there]
        if left is not None:
            kept.append(left)
    log.entries[: len(cleaned)] = kept
    log.removed = sorted({*log.removed, *removed})


def _last(log: Log) -> dict[int, Entry]:
    """Of each producer the batch that stays for its sequence numbers, or else its marker."""
    last: dict[int, Entry] = {}
    for entry in log.entries:
        before = last.get(entry.producer)
        ends = entry.marker and before is not None and before.producer_epoch == entry.producer_epoch
        if entry.producer >= 0 and not ends:
            last[entry.producer] = entry
    return last


def _marker(entry: Entry, has_records: bool, is_last: bool) -> Entry | None:
    if has_records:
        return entry
    if not entry.horizon:
        return dataclasses.replace(entry, horizon=True)
    return _rewritten(entry, [], horizon=True) if is_last else None


def _data(entry: Entry, newest: dict[bytes | None, int], is_last: bool) -> Entry | None:
    """The batch with what is kept of it; None when all of it goes."""
    there = placed(entry)
    kept, deletes = [], False
    for offset, (timestamp, body) in there if entry.outcome else ():
        key, value = key_and_value(body)
        if newest[key] != offset or (value is None and entry.horizon):
            continue
        deletes = deletes or value is None
        kept.append((offset, (timestamp, body)))
    if not kept and not is_last:
        return None
    if len(kept) == len(there) and not (deletes and not entry.horizon):
        return entry
    return _rewritten(entry, kept, horizon=deletes or entry.horizon)


def _rewritten(entry: Entry, kept: list[tuple[int, Record]], horizon: bool) -> Entry:
    """The batch with these records, uncompressed."""
    times = [timestamp for _, (timestamp, _) in kept]
    base = _HORIZON if horizon else times[0] if times else -1
    payload = b"".join(_encoded(offset - entry.base, timestamp - base, body) for offset, (timestamp, body) in kept)
    header = Header._make(HEADER.unpack_from(entry.data))
    attributes = header.attributes & ~CODEC_MASK | (DELETE_HORIZON if horizon else 0)
    length, newest = HEADER_SIZE - LOG_OVERHEAD + len(payload), max(times, default=-1)
    header = header._replace(
        length=length, attributes=attributes, base_timestamp=base, max_timestamp=newest, records=len(kept)
    )
    data = bytearray(HEADER.pack(*header) + payload)
    stamp_crc(data)
    offsets, records = [offset for offset, _ in kept], [record for _, record in kept]
    return dataclasses.replace(entry, data=bytes(data), offsets=offsets, records=records, horizon=horizon)


def _encoded(offset_delta: int, time_delta: int, body: bytes) -> bytes:
    lead = b"\0" + varint(time_delta) + varint(offset_delta)
    return varint(len(lead) + len(body)) + lead + body
