"""The API versions that the appliance speaks, and whether a broker has them all.

One version of each, the newest that every broker since 2.8 has: the transaction calls of the first transaction
protocol (KIP-98, KIP-360), whose epochs the lanes steer themselves, and topic ids in Metadata (KIP-516).
"""

from collections.abc import Mapping

from kio.schema.add_partitions_to_txn.v3 import AddPartitionsToTxnRequest
from kio.schema.create_partitions.v3 import CreatePartitionsRequest
from kio.schema.create_topics.v7 import CreateTopicsRequest
from kio.schema.describe_configs.v4 import DescribeConfigsRequest
from kio.schema.end_txn.v3 import EndTxnRequest
from kio.schema.fetch.v12 import FetchRequest
from kio.schema.find_coordinator.v3 import FindCoordinatorRequest
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest
from kio.schema.init_producer_id.v4 import InitProducerIdRequest
from kio.schema.list_offsets.v6 import ListOffsetsRequest
from kio.schema.metadata.v11 import MetadataRequest
from kio.schema.produce.v9 import ProduceRequest
from kio.static.protocol import RequestPayload

SPOKEN: tuple[type[RequestPayload], ...] = (
    ProduceRequest,
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    FindCoordinatorRequest,
    CreateTopicsRequest,
    InitProducerIdRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    CreatePartitionsRequest,
)


def missing(offered: Mapping[int, tuple[int, int]]) -> list[str]:
    """What a broker lacks, one entry an API, given its lowest and highest version by API key."""
    lacking = []
    for request in SPOKEN:
        key, version = int(request.__api_key__), int(request.__version__)
        low, high = offered.get(key, (0, -1))
        if not low <= version <= high:
            lacking.append(f"{request.__name__.removesuffix('Request')} {version}")
    return lacking
