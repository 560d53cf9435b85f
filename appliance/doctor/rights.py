"""The rights of the API keys, a line for each row of the table in docs/operations.md."""

from typing import NamedTuple


class Right(NamedTuple):
    """The beginnings of a row's cells, and the step that checks it; or of which topics at the destination it is."""

    cluster: str
    resource: str
    operations: str
    of: str


_TABLE = """
source | the topics that match | Describe, Read, DescribeConfigs | source: read access
source | groups that match | Describe | source: groups
source | with ACLS_SYNC=yes the cluster | Describe | source: ACLs
source | only to fail back: the topics, and topics and transactional ids | Write | source: failback
source | only to fail back: groups that match | Read | source: failback
source | only to fail back with --keep-diverged: topics | Create | source: failback
source | transactional ids of its producers | Describe | status
destination | topics that end in | Create, Describe, Read, Write, DescribeConfigs, AlterConfigs, Alter | copies
destination | topics replicator-<SOURCE_CLUSTER_ID>.positions | Create, Describe, Read, Write, DescribeConfigs | own
destination | with ON_TRANSFORM_ERROR=dead-letter | Create, Describe, Write, DescribeConfigs, AlterConfigs, Alter | dead
destination | for the doctor topic | Create, Describe, Read, Write, DescribeConfigs, Delete | destination: transactions
destination | groups that match | Read | destination: groups
destination | with REPLICA_GROUPS_REGEX topic | Create, Describe, Read, Write | groups
destination | topic replicator-registry | Create, Describe, Read, Write, DescribeConfigs | registry
destination, and to fail back the source | topic replicator-producers | Describe, Read, Write | producers
destination | with MM2_FORMATS=yes topics | Create, Describe, Read, Write | mirrors
destination | with ACLS_SYNC=yes the cluster | Alter | destination: ACLs
destination | transactional ids that begin with | Describe, Write | destination: transactions
"""

RIGHTS = tuple(Right(*line.split(" | ")) for line in _TABLE.strip().splitlines())
