"""The lane's process between the two ends of a job, which come in any order."""

import asyncio
from pathlib import Path

from appliance.errors import ApplianceError
from appliance.replicator.transform.messages import encode
from appliance.replicator.transform.ranges import Range
from appliance.replicator.transform.service import TransformService
from appliance.replicator.transform.stream import read_message
from tests.support.record_batches import outgoing_of, record


def quiet(_: str, error: ApplianceError | None) -> None:
    assert error is None


async def test_case_505_a_sink_whose_source_was_served_by_an_earlier_process_is_let_go(tmp_path: Path) -> None:
    service, socket = TransformService(True, quiet), tmp_path / "transform-0"
    whole = Range(("orders", 0), 0, 1, outgoing_of([record(0, b"a")], 1), 10**6)
    async with service.serving(socket):
        late, says_late = await asyncio.open_unix_connection(str(socket))
        says_late.write(encode({"role": "sink", "attempt": 7}))
        source, says = await asyncio.open_unix_connection(str(socket))
        says.write(encode({"role": "source", "attempt": 8}))
        sink, says_done = await asyncio.open_unix_connection(str(socket))
        says_done.write(encode({"role": "sink", "attempt": 8}))
        asked = asyncio.create_task(service.transform([whole]))
        assert (await read_message(source))[0]["ranges"]
        assert (await read_message(sink))[0]["ranges"]
        later, says_later = await asyncio.open_unix_connection(str(socket))
        says_later.write(encode({"role": "sink", "attempt": 6}))
        assert (await late.read(), await later.read()) == (b"", b"")
        says_done.write(encode({"done": 0, "failed": [], "grown": False, "batches": []}))
        (outcome,) = await asked
        assert outcome.filtered == 1
        for writer in (says_late, says_later, says, says_done):
            writer.close()
