"""The properties for MirrorMaker 2."""

from bench.lib.filling import Load
from bench.lib.mirror_maker import properties

LOAD = Load(records=1000, topic="measured", partitions=6)


def entries(exactly_once: bool) -> dict[str, str]:
    return properties("s:1", "d:2", LOAD, "mirrored7", exactly_once)


ENTRIES = entries(exactly_once=False)


def test_only_the_flow_from_source_to_destination_is_switched_on() -> None:
    assert ENTRIES["clusters"] == "mirrored7,destination"
    assert ENTRIES["mirrored7.bootstrap.servers"] == "s:1"
    assert ENTRIES["destination.bootstrap.servers"] == "d:2"
    assert {name for name in ENTRIES if "->" in name} == {
        "mirrored7->destination.enabled",
        "mirrored7->destination.topics",
    }
    assert ENTRIES["mirrored7->destination.topics"] == "measured"


def test_it_has_a_task_for_each_partition_and_large_polls_and_batches() -> None:
    assert ENTRIES["tasks.max"] == "6"
    assert ENTRIES["mirrored7.consumer.max.poll.records"] == "5000"
    assert ENTRIES["destination.producer.batch.size"] == str(128 * 1024)
    assert ENTRIES["destination.producer.linger.ms"] == "5"


def test_its_copy_is_compressed_as_the_source_is() -> None:
    assert ENTRIES["destination.producer.compression.type"] == LOAD.codec


def test_every_topic_it_makes_fits_one_broker() -> None:
    factors = {name: value for name, value in ENTRIES.items() if name.endswith("replication.factor")}
    assert set(factors.values()) == {"1"}
    assert len(factors) == 7


def test_exactly_once_is_asked_of_the_destination_and_of_nothing_else() -> None:
    asked = entries(exactly_once=True)
    assert asked["destination.exactly.once.source.support"] == "enabled"
    assert asked["dedicated.mode.enable.internal.rest"] == "true"
    assert asked["listeners"].startswith("http://127.0.0.1:")
    assert {name: asked[name] for name in ENTRIES} == ENTRIES


def test_no_aborted_record_is_read() -> None:
    assert ENTRIES["mirrored7.consumer.isolation.level"] == "read_committed"
