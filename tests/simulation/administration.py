"""Topics made, grown, deleted, described and configured, at brokers in memory."""

from kio.schema.create_partitions.v3 import CreatePartitionsRequest, CreatePartitionsResponse
from kio.schema.create_partitions.v3.response import CreatePartitionsTopicResult
from kio.schema.create_topics.v7 import CreateTopicsRequest, CreateTopicsResponse
from kio.schema.create_topics.v7.response import CreatableTopicResult
from kio.schema.delete_records.v2 import DeleteRecordsRequest, DeleteRecordsResponse
from kio.schema.delete_records.v2.response import DeleteRecordsPartitionResult, DeleteRecordsTopicResult
from kio.schema.delete_topics.v6 import DeleteTopicsRequest, DeleteTopicsResponse
from kio.schema.delete_topics.v6.response import DeletableTopicResult
from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResult
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.response import AlterConfigsResourceResponse
from kio.static.primitive import i8, i16, i64

from tests.simulation.brokers import AT_ONCE, Brokers

DEFAULTS = {"max.message.bytes": "1048588", "min.insync.replicas": "1", "cleanup.policy": "delete"}
_OF_THE_TOPIC, _BY_DEFAULT = i8(1), i8(5)
_NONE = ErrorCode.none


class Administration:
    """Answers for one cluster."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        brokers.handles(DescribeConfigsRequest, self._describe)
        brokers.handles(CreateTopicsRequest, self._create)
        brokers.handles(CreatePartitionsRequest, self._grow)
        brokers.handles(DeleteTopicsRequest, self._delete)
        brokers.handles(IncrementalAlterConfigsRequest, self._alter)
        brokers.handles(DeleteRecordsRequest, self._delete_records)

    def _describe(self, request: DescribeConfigsRequest, _: int) -> DescribeConfigsResponse:
        results = []
        for resource in request.resources:
            topic = self._brokers.topics.get(resource.resource_name)
            code = ErrorCode.unknown_topic_or_partition if topic is None else _NONE
            settings = {**DEFAULTS, **topic.configs} if topic else {}
            entries = tuple(
                DescribeConfigsResourceResult(
                    name=key,
                    value=value,
                    read_only=False,
                    config_source=_OF_THE_TOPIC if topic and key in topic.configs else _BY_DEFAULT,
                    is_sensitive=False,
                    synonyms=(),
                    documentation=None,
                )
                for key, value in settings.items()
                if resource.configuration_keys is None or key in resource.configuration_keys
            )
            results.append(
                DescribeConfigsResult(
                    error_code=code,
                    error_message=None,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    configs=entries,
                )
            )
        return DescribeConfigsResponse(throttle_time=AT_ONCE, results=tuple(results))

    def _create(self, request: CreateTopicsRequest, _: int) -> CreateTopicsResponse:
        results = []
        for wanted in request.topics:
            name, code = str(wanted.name), _NONE
            if name in self._brokers.topics:
                code = ErrorCode.topic_already_exists
            elif not request.validate_only:
                configs = {config.name: config.value or "" for config in wanted.configs}
                self._brokers.make(name, int(wanted.num_partitions), configs)
                self._brokers.noted = f"made {name}"
            results.append(
                CreatableTopicResult(
                    name=wanted.name,
                    topic_id=None,
                    error_code=code,
                    error_message=None,
                    num_partitions=wanted.num_partitions,
                    replication_factor=i16(2),
                    configs=None,
                )
            )
        return CreateTopicsResponse(throttle_time=AT_ONCE, topics=tuple(results))

    def _grow(self, request: CreatePartitionsRequest, _: int) -> CreatePartitionsResponse:
        results = []
        for wanted in request.topics:
            topic = self._brokers.topics.get(str(wanted.name))
            code = _NONE
            if topic is None:
                code = ErrorCode.unknown_topic_or_partition
            elif len(topic.logs) >= wanted.count:
                code = ErrorCode.invalid_partitions
            else:
                self._brokers.grow(topic.name, int(wanted.count))
            results.append(CreatePartitionsTopicResult(name=wanted.name, error_code=code))
        return CreatePartitionsResponse(throttle_time=AT_ONCE, results=tuple(results))

    def _delete_records(self, request: DeleteRecordsRequest, node: int) -> DeleteRecordsResponse:
        topics = []
        for topic in request.topics:
            results = []
            for each in topic.partitions:
                log = self._brokers.log((str(topic.name), int(each.partition_index)))
                code = self._brokers.leads(log, node)
                if code is _NONE and log is not None:
                    log.delete_before(int(each.offset))
                start = i64(log.start if log is not None else -1)
                results.append(
                    DeleteRecordsPartitionResult(
                        partition_index=each.partition_index, low_watermark=start, error_code=code
                    )
                )
            topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=tuple(results)))
        return DeleteRecordsResponse(throttle_time=AT_ONCE, topics=tuple(topics))

    def _alter(self, request: IncrementalAlterConfigsRequest, _: int) -> IncrementalAlterConfigsResponse:
        results = []
        for resource in request.resources:
            topic = self._brokers.topics.get(resource.resource_name)
            if topic is not None and not request.validate_only:
                for config in resource.configs:
                    if config.value is None:
                        topic.configs.pop(config.name, None)
                    else:
                        topic.configs[config.name] = config.value
            results.append(
                AlterConfigsResourceResponse(
                    error_code=_NONE if topic else ErrorCode.unknown_topic_or_partition,
                    error_message=None,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
        return IncrementalAlterConfigsResponse(throttle_time=AT_ONCE, responses=tuple(results))

    def _delete(self, request: DeleteTopicsRequest, _: int) -> DeleteTopicsResponse:
        results = []
        for wanted in request.topics:
            held = self._brokers.topics.values()
            known = [each for each in held if each.name == wanted.name or each.id == wanted.topic_id]
            for topic in known:
                self._brokers.delete(topic.name)
            code = _NONE if known else ErrorCode.unknown_topic_or_partition
            results.append(DeletableTopicResult(name=wanted.name, topic_id=wanted.topic_id, error_code=code))
        return DeleteTopicsResponse(throttle_time=AT_ONCE, responses=tuple(results))
