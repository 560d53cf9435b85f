"""A source of one partition, for which leaders of several epochs answer differently, as in KIP-320."""

import random
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13 import FetchRequest, FetchResponse
from kio.schema.fetch.v13.request import FetchPartition
from kio.schema.fetch.v13.response import EpochEndOffset, FetchableTopicResponse, PartitionData
from kio.schema.list_offsets.v6 import ListOffsetsRequest, ListOffsetsResponse
from kio.schema.list_offsets.v6.response import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from kio.schema.metadata.v11 import MetadataRequest
from kio.schema.types import TopicName
from kio.serial import entity_reader
from kio.static.primitive import i32, i64
from kio.static.protocol import ResponsePayload

from appliance.kafka.client.fetch import EpochEnd
from appliance.kafka.client.offsets import Bound
from appliance.kafka.client.transactions import milliseconds
from tests.support.batches import made, patched
from tests.support.fetching_broker import FetchingBroker
from tests.support.scripted_broker import versions

_BATCH = made([(0, b"key", b"value", [])])


@dataclass
class LeadingBroker(FetchingBroker):
    """A broker that answers as the leader of a request's epoch, and as the oldest leader without an epoch.

    ``logs`` holds the log of each epoch's leader. ``metadata_epochs`` are the epochs in its Metadata answers, one after
    the other; the last repeats. A leader with an epoch before ``begun`` knows that it was deposed. ``unknown_ends`` is
    the number of answers in which a leader does not know the end of its log (KIP-207). ``ends`` are the ends of the
    last read epochs.
    """

    partitions: int = 1
    chance: random.Random = field(default_factory=random.Random)
    logs: dict[int, range] = field(default_factory=dict)
    metadata_epochs: list[int] = field(default_factory=list)
    begun: int = 0
    unknown_ends: int = 0
    ends: dict[int, EpochEnd] = field(default_factory=dict)
    last_epochs: list[int] = field(default_factory=list)
    """The last read epochs in the Fetch requests."""

    def _leader_epoch(self) -> int:
        return self.metadata_epochs.pop(0) if len(self.metadata_epochs) > 1 else self.metadata_epochs[0]

    def _answer(self, key: int, content: bytes) -> ResponsePayload:
        view = memoryview(content)
        if key == MetadataRequest.__api_key__:
            return self._metadata()
        if key == FetchRequest.__api_key__:
            _, begins = entity_reader(FetchRequest.__header_schema__)(view, 0)
            return self._fetched(entity_reader(FetchRequest)(view, begins)[0])
        if key == ListOffsetsRequest.__api_key__:
            _, begins = entity_reader(ListOffsetsRequest.__header_schema__)(view, 0)
            return self._listed(entity_reader(ListOffsetsRequest)(view, begins)[0])
        return versions(newest=13)

    def _whim(self, name: str, likelihood: float) -> bool:  # noqa: ARG002
        return False

    def _error(self, epoch: int) -> ErrorCode:
        if 0 <= epoch < self.begun:
            return ErrorCode.fenced_leader_epoch
        return ErrorCode.none if epoch < 0 or epoch in self.logs else ErrorCode.unknown_leader_epoch

    def _log(self, epoch: int) -> range:
        return self.logs[min(self.logs) if epoch < 0 else epoch]

    def _fetched(self, request: FetchRequest) -> FetchResponse:
        found = [self._read(asked) for topic in request.topics for asked in topic.partitions]
        topic = FetchableTopicResponse(topic_id=self.topic_id, partitions=tuple(found))
        return self._response(0, (topic,))

    def _read(self, asked: FetchPartition) -> PartitionData:
        error, records, diverging = self._error(asked.current_leader_epoch), b"", EpochEndOffset()
        self.last_epochs.append(asked.last_fetched_epoch)
        end = self.ends.get(asked.last_fetched_epoch)
        if error is ErrorCode.none:
            log = self._log(asked.current_leader_epoch)
            if not log.start <= asked.fetch_offset <= log.stop:
                error = ErrorCode.offset_out_of_range
            elif end is not None:
                diverging = EpochEndOffset(epoch=i32(end.epoch), end_offset=i64(end.offset))
            elif asked.fetch_offset in log:
                records = patched(_BATCH, base_offset=asked.fetch_offset, leader_epoch=0)
        return PartitionData(
            partition_index=asked.partition,
            error_code=error,
            high_watermark=0,
            last_stable_offset=0,
            log_start_offset=0,
            diverging_epoch=diverging,
            aborted_transactions=None,
            records=records,
        )

    def _listed(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        (topic,) = request.topics
        (asked,) = topic.partitions
        error, offset = self._error(asked.current_leader_epoch), -1
        at_start = asked.timestamp == Bound.START.value[0]
        if error is ErrorCode.none and not at_start and self.unknown_ends:
            self.unknown_ends -= 1
            error = ErrorCode.offset_not_available
        if error is ErrorCode.none:
            log = self._log(asked.current_leader_epoch)
            offset = log.start if at_start else log.stop
        answer = ListOffsetsPartitionResponse(
            partition_index=asked.partition_index, error_code=error, offset=i64(offset)
        )
        listed = ListOffsetsTopicResponse(name=TopicName(self.topic), partitions=(answer,))
        return ListOffsetsResponse(throttle_time=milliseconds(0), topics=(listed,))
