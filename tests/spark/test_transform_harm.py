"""Records that would end Spark, hold it up, or make it fetch: each stops alone."""

import asyncio
import os
from pathlib import Path

import pytest

from appliance.engine.model.ranges import Outcome
from appliance.errors import ProcessFailed
from testbed.process import OwnedProcess
from tests.spark.test_transform import partitions_of, send, status_of, transforming
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.rows import read_rows
from tests.support.sql import range_of, running_sql, values_of

HARMED = """
SELECT key, CASE
    WHEN string(value) LIKE 'repeat %' THEN binary(repeat('x', INT(substr(string(value), 8))))
    WHEN xpath_string(string(value), '/a') <> '' THEN value
    ELSE binary('empty')
END AS value, headers FROM records WHERE NOT string(value) RLIKE '^(a|b)*$'
"""
"""Its regex and its XML both need Java's stack, and the text its heap."""

FOR_EVER = "SELECT key, value, headers FROM records WHERE NOT string(value) RLIKE '^.*.*.*.*.*.*.*.*c$'"
ENDLESS = b"a" * 1000
"""Java would look for it in this for years."""


def stopped_at(outcome: Outcome) -> tuple[int, str]:
    """The offset and the reason of the record that stops a range."""
    assert outcome.stop is not None
    return outcome.stop.offset, outcome.stop.reason


async def test_case_960_a_record_that_needs_more_of_java_than_there_is_stops_alone(tmp_path: Path) -> None:
    # Before, it ended the JVM with all lanes, at each start.
    good = [b"<a><b>%d</b></a>" % number for number in range(200)]
    bad = [b"ab" * 1500, b"<a>" * 20_000 + b"</a>" * 20_000, b"repeat 1500000000", b"<a/>"]
    async with running_sql(tmp_path, HARMED) as sql, asyncio.timeout(PATIENCE):
        ranges = [range_of([*good, each, *good], partition=number) for number, each in enumerate(bad)]
        regex, xml, large, other = await sql.service.transform(ranges)
        assert stopped_at(regex) == stopped_at(xml) == (200, "java.lang.StackOverflowError")
        assert stopped_at(large) == (200, "java.lang.OutOfMemoryError: Java heap space")
        assert values_of(regex) == values_of(xml) == values_of(large) == good
        assert values_of(other) == [*good, b"empty", *good]
        assert sql.problems == []


async def test_case_961_what_a_record_names_is_not_fetched(tmp_path: Path) -> None:
    # Before, an external DTD made the destination request any URL, and a silent server held up all lanes of a task.
    asked: list[object] = []

    async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(writer.get_extra_info("peername"))
        writer.close()

    statement = """
    SELECT key, coalesce(xpath_string(string(value), '/a'), from_xml(string(value), 'b STRING').b) AS value, headers
    FROM records"""
    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/a"
    secret = tmp_path / "secret.dtd"
    secret.write_text('<!ENTITY s "secret">')
    files = b"<!DOCTYPE a SYSTEM '%b'><a>&s;</a>" % secret.as_uri().encode()
    dtd, entity, schema = (
        text.encode()
        for text in (
            f"<!DOCTYPE a SYSTEM '{url}'><a>1</a>",
            f"<!DOCTYPE a [<!ENTITY % s SYSTEM '{url}'> %s;]><a>1</a>",
            f"<a xmlns:x='http://www.w3.org/2001/XMLSchema-instance' x:noNamespaceSchemaLocation='{url}'>1</a>",
        )
    )
    async with server, running_sql(tmp_path, statement) as sql, asyncio.timeout(PATIENCE):
        ranges = [range_of([each], partition=number) for number, each in enumerate((dtd, files, entity, schema))]
        *refused, by_entity, by_schema = await sql.service.transform(ranges)
    assert [stopped_at(outcome)[0] for outcome in refused] == [0, 0]
    assert values_of(by_entity) == values_of(by_schema) == [b"1"]
    assert asked == []


async def test_a_job_that_computes_on_a_record_for_ever_is_told_with_its_offsets(tmp_path: Path) -> None:
    async with running_sql(tmp_path, FOR_EVER, silence=5) as sql, asyncio.timeout(PATIENCE):
        assert values_of((await sql.service.transform([range_of([b"b"])]))[0]) == [b"b"]
        with pytest.raises(ProcessFailed, match=r"no progress for 5 s in .*orders-1 offsets 3 to 4"):
            await sql.service.transform([range_of([b"b"]), range_of([b"b", ENDLESS], 3, 1)])


def soon(directory: Path) -> dict[str, str]:
    """The environment of a Python in which a job is silent after three seconds."""
    text = "from appliance.sql.flight import service\nservice.SILENCE_SECONDS = 3.0\n"
    (directory / "sitecustomize.py").write_text(text)
    return {"PYTHONPATH": os.pathsep.join([str(directory), str(Path(__file__).parents[2])])}


async def ended_or_said(replicator: OwnedProcess, words: str) -> bool:
    """Wait until the replicator says something, True, or ends."""
    said = asyncio.create_task(replicator.wait_for_line(words, 10 * PATIENCE))
    ended = asyncio.create_task(replicator.wait(10 * PATIENCE))
    done, others = await asyncio.wait([said, ended], return_when=asyncio.FIRST_COMPLETED)
    for other in others:
        other.cancel()
    await asyncio.gather(said, ended, return_exceptions=True)
    return said in done and said.exception() is None


@pytest.mark.release  # held by the test above and tests/unit/engine/test_trials.py
@pytest.mark.asyncio(loop_scope="session")
async def test_case_962_a_record_on_which_the_sql_computes_for_ever_is_found_by_restarts_and_stopped_alone(
    pair: Pair, tmp_path: Path
) -> None:
    # Each restart met the record again, and the link copied nothing.
    topic = pair.topic("source", 2)
    copy = f"destination-{topic}"
    send(pair, topic, [b"good", ENDLESS, b"after"], 0)
    send(pair, topic, [b"%d" % number for number in range(100)], 1)
    states, said = set(), False
    for number in range(10):
        (looked := tmp_path / f"status-{number}").mkdir()
        async with transforming(pair, topic, tmp_path, FOR_EVER, **soon(tmp_path)) as replicator:
            said = await ended_or_said(replicator, f"{topic}-0 offset 1 fails in the SQL")
        if said:
            break
        states.add((await status_of(pair, topic, looked))["state"])
    assert said
    assert "failing" in states
    assert [row[2] for row in read_rows(pair.grape, copy, 1)] == [b"%d" % number for number in range(100)]
    assert [row[2] for row in read_rows(pair.grape, copy, 0)] == [b"good"]
    stopped, running = partitions_of(await status_of(pair, topic, tmp_path))
    assert (stopped["next_offset"], running["stopped"]) == (1, None)
    assert "offset 1 fails in the SQL" in stopped["stopped"]["reason"]
