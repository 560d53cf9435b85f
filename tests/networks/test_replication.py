"""A topic of the source VPC is copied to the destination VPC, and an independent client compares both."""

import random
import socket

import pytest

from testbed.process import OwnedProcess
from tests.networks.clients import Kcat, in_destination_vpc, in_source_vpc
from tests.networks.clusters import COPY, REPLICATED
from tests.networks.vpcs import Vpcs

RECORDS = 5000
SECONDS = 60.0


@pytest.mark.asyncio(loop_scope="session")
async def test_a_topic_of_the_source_vpc_is_copied_record_by_record(vpcs: Vpcs, replicator: OwnedProcess) -> None:
    there, here = Kcat(in_source_vpc(vpcs)), Kcat(in_destination_vpc(vpcs))
    generator = random.Random(15060)
    records = [f"key-{generator.randrange(500)}:value {number}" for number in range(RECORDS)]
    there.run("-P", "-t", REPLICATED, "-K", ":", "-H", "origin=orange", given="\n".join(records))
    original = there.everything(REPLICATED)
    assert len(original) >= RECORDS

    async def copied() -> bool:
        return len(here.everything(COPY)) >= len(original)

    await replicator.wait_until(copied, SECONDS, f"copy {REPLICATED}")
    assert here.everything(COPY) == original


@pytest.mark.usefixtures("replicator")
@pytest.mark.asyncio(loop_scope="session")
async def test_the_appliance_too_says_that_both_sides_hold_the_same(vpcs: Vpcs) -> None:
    verification = await vpcs.start_appliance(vpcs.machines.destination_vm, "verify")
    assert await verification.wait(SECONDS) == 0, verification.log_file.read_text()


@pytest.mark.usefixtures("replicator")
def test_the_replicator_runs_where_its_machine_cannot_resolve_its_own_name(vpcs: Vpcs) -> None:
    # Case 7: Spark looked the name up, and its JVM ended.
    assert vpcs.machines.destination_vm.run("getent", "hosts", socket.gethostname()).returncode
