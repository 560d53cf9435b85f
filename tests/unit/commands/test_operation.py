"""The stamp of a command's changes."""

from dataclasses import replace

from appliance.commands.run.operation import Choice, Operation
from appliance.link.client.clusters import destination_cluster, source_cluster
from appliance.link.handle import Link
from appliance.link.model.claims import Claim, decode_claim, deletion_of, encode_claim
from tests.support.facts import settings


async def test_case_1050_the_words_of_a_change_are_read_as_they_were_written() -> None:
    # A deletion for a reason in another encoding waited in vain to see its record, and failed halfway.
    own = settings()
    link = Link.of(own, source_cluster(own), destination_cluster(own))
    operation = Operation(own, Choice(why="caf\udce9"), link, print)
    stamp = operation.lanes.stamp
    claim = Claim("link", 1, deleted_by=stamp.by, why=stamp.why)
    read = decode_claim(encode_claim(deletion_of("link"), "link", claim, 1))[2]
    assert read is not None
    assert replace(read, rank=claim.rank) == claim
