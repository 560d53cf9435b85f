"""What is stored has a version, and a release refuses what only a newer one knows, in one line."""

import base64
import json
import re
import uuid
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from appliance.audit.model.files import decode_claim as decode_audit_claim
from appliance.audit.model.state import decode_state
from appliance.errors import PeerError
from appliance.kafka.records.records import Record, body
from appliance.link.model.checkpoint_records import decode
from appliance.link.model.claims import decode_claim
from appliance.link.model.offset_records import decode_segment
from appliance.link.model.order_records import decode_sequence_mark
from appliance.link.model.producers import Producers
from appliance.order.model import beats

PAGE = Path(__file__).parents[3] / "docs" / "run" / "upgrade.md"
NEWER = b'{"version":99}'
PARTITION = {"topic": "orders", "partition": 0}
POSITIONS: tuple[Mapping[str, Any], ...] = (
    PARTITION,
    {**PARTITION, "gap": [0, 1]},
    {"lane": 0},
    {"mark": 0},
    {"link": 0},
    {"start": "orders"},
    {"state": "orders"},
    {"layout": 0},
    {"sql": 1, "run": "a"},
    {"promise": "orders"},
    {"order": ["orders", 0]},
)
COPY = {"copy": "orders.copy", "id": uuid.UUID(int=1).hex, "link": "replicator-orange"}
Refuse = Callable[[], object]


def of_newer(decode: Callable[[Record], object], key: Mapping[str, Any]) -> Refuse:
    return lambda: decode(Record(7, 1, body(json.dumps(key).encode(), NEWER)))


STORED: Mapping[str, tuple[Refuse, ...]] = {
    "`replicator-<SOURCE_CLUSTER_ID>.positions`": tuple(of_newer(decode, key) for key in POSITIONS),
    "`replicator-<SOURCE_CLUSTER_ID>.offsets`": (of_newer(decode_segment, {**PARTITION, "from": 0}),),
    "`replicator-registry`": (of_newer(decode_claim, COPY),),
    "`replicator-producers`": (
        of_newer(lambda record: Producers("grape").take([record]), {"cluster": "grape", "producer": 1}),
    ),
    "`replicator-order.<T>.hidden`": (of_newer(decode_sequence_mark, {"mark": 0}),),
    "`replicator-order.beats`": (of_newer(beats.decode, {"beat": "orange"}),),
    "the audit table": (
        lambda: decode_audit_claim(1, NEWER),
        lambda: decode_state(base64.b64encode(zlib.compress(NEWER))),
    ),
}


@pytest.mark.parametrize("where", STORED)
def test_a_format_that_only_a_newer_release_knows_is_refused_in_one_line(where: str) -> None:
    for refuse in STORED[where]:
        with pytest.raises(PeerError, match=r"^[^\n]*newer release[^\n]*$"):
            refuse()


def test_the_page_lists_all_that_is_stored_with_a_version() -> None:
    section = PAGE.read_text().split("## What is stored", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|", section, re.MULTILINE)
    assert {where for where, version in rows if re.fullmatch("[0-9, ]+", version)} == STORED.keys()
