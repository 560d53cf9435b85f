"""The API versions that the appliance speaks, and the check that a broker has those of its side.

Requests and responses are written and read in the newest version that every broker since 2.8 has: the transaction calls
of the first transaction protocol (KIP-98, KIP-360), whose epochs the lanes control themselves, and topic ids in
Metadata (KIP-516). An older version with everything that the appliance needs is used with brokers that have no newer
one; ``older`` converts between them. Each side is asked only for the APIs that it needs.
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
from kio.schema.list_groups.v5 import ListGroupsRequest
from kio.schema.list_offsets.v6 import ListOffsetsRequest
from kio.schema.metadata.v11 import MetadataRequest
from kio.schema.offset_commit.v8 import OffsetCommitRequest
from kio.schema.produce.v9 import ProduceRequest
from kio.static.protocol import RequestPayload

from appliance.settings.values import Side

OfferedVersions = Mapping[int, tuple[int, int]]
"""The lowest and highest version of each API that a broker has, by API key."""

OLDEST: Mapping[type[RequestPayload], int] = {
    MetadataRequest: 7,  # the first with leader epochs (KIP-320); topic ids come with 10
    FetchRequest: 12,  # the first in which a broker detects that the reader's log was truncated (KIP-595)
    ListOffsetsRequest: 4,  # the first with leader epochs
    DescribeConfigsRequest: 1,  # the first that marks the settings of the topic itself (KIP-226)
    ProduceRequest: 7,  # the first with batches compressed by zstd (KIP-110)
    FindCoordinatorRequest: 1,  # the first for transactions
    InitProducerIdRequest: 1,
    AddPartitionsToTxnRequest: 1,
    EndTxnRequest: 1,
    CreateTopicsRequest: 4,  # the first with the brokers' own replication factor (KIP-464)
    CreatePartitionsRequest: 1,
    IncrementalAlterConfigsRequest: 0,
    ListGroupsRequest: 4,  # the first with the state of a group (KIP-518); its type comes with 5 (KIP-848)
    OffsetCommitRequest: 6,  # the first with leader epochs
}
"""The oldest usable version of each API; the newest is the request's own."""

_READ = (MetadataRequest, FetchRequest, ListOffsetsRequest)
_WHERE_THEY_ARE = (IncrementalAlterConfigsRequest, ListGroupsRequest, OffsetCommitRequest)
NEEDED: Mapping[Side, tuple[type[RequestPayload], ...]] = {
    Side.SOURCE: _READ,
    Side.DESTINATION: tuple(request for request in OLDEST if request not in _WHERE_THEY_ARE),
}
"""Requests that each cluster must support. Others are used if available: without DescribeConfigs at the source and
IncrementalAlterConfigs at the destination, copies do not get their sources' settings. The same holds for those of
groups."""


def version(offered: OfferedVersions, request: type[RequestPayload]) -> int:
    """The version for a broker: the newest common one, or our own if the broker has not listed any."""
    newest = int(request.__version__)
    oldest = OLDEST.get(request, newest)
    low, high = offered.get(int(request.__api_key__), (newest, newest))
    return min(newest, high) if low <= newest and oldest <= high else newest


def offers(offered: OfferedVersions, request: type[RequestPayload]) -> bool:
    """True when a broker has a version of this API that the appliance speaks."""
    newest = int(request.__version__)
    low, high = offered.get(int(request.__api_key__), (0, -1))
    return low <= newest and OLDEST.get(request, newest) <= high


def missing(offered: OfferedVersions, side: Side) -> list[str]:
    """The APIs that a broker of that side lacks, with the usable versions and the broker's own."""
    lacking = []
    for request in NEEDED[side]:
        if not offers(offered, request):
            name, has = request.__name__.removesuffix("Request"), offered.get(int(request.__api_key__))
            offered_range = f"it has {_range(*has)}" if has else "it has none"
            lacking.append(f"{name} {_range(OLDEST[request], int(request.__version__))} ({offered_range})")
    return lacking


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"
