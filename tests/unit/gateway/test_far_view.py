import json

import pytest

from appliance.errors import PeerError, TargetRefused, TimedOut
from appliance.gateway.model.far_view import LEVELS_MAX, OLDER_RELEASE_SECONDS, FarView, Unknown, read_document
from appliance.tunnel.model.connect import STATUS_SIZE_MAX
from tests.support.brokers import NOW

DOCUMENT = {"side": "source", "link": "orange-grape", "troubles": []}


def nested(levels: int) -> bytes:
    """A document with a list of so many levels."""
    return json.dumps(DOCUMENT).encode()[:-1] + b', "x": ' + b"[" * levels + b"]" * levels + b"}"


def test_before_the_first_answer_all_is_unknown() -> None:
    view = FarView()
    assert (view.document, view.at) == (None, None)
    assert view.unknown(NOW) == Unknown(NOW, "nobody asked for it until now; it is being fetched")


def test_an_answer_is_known_until_it_is_too_old_to_be_of_now() -> None:
    view = FarView().answered(DOCUMENT, NOW)
    assert (view.document, view.at) == (DOCUMENT, NOW)
    assert view.unknown(NOW + 30) is None
    stale = view.unknown(NOW + 31)
    assert stale is not None
    assert stale.since == NOW


def test_a_failure_keeps_the_last_answer_and_says_since_when_there_is_none() -> None:
    view = FarView().answered(DOCUMENT, NOW).failed(TimedOut("silent"), NOW + 3).failed(PeerError("odd"), NOW + 6)
    assert (view.document, view.at) == (DOCUMENT, NOW)
    assert view.unknown(NOW + 6) == Unknown(NOW + 3, "odd")
    assert view.answered(DOCUMENT, NOW + 9).unknown(NOW + 9) is None


def test_an_older_release_is_named_rarely_asked_and_has_no_document() -> None:
    view = FarView().answered(DOCUMENT, NOW).failed(TargetRefused("not on the allow-list (403)"), NOW + 3)
    assert (view.document, view.at, view.pause) == (None, None, OLDER_RELEASE_SECONDS)
    assert view.unknown(NOW + 4) == Unknown(
        NOW + 3, "the source VM's end is of an older release, which does not tell its status"
    )
    assert view.failed(TimedOut("silent"), NOW + 303).pause < OLDER_RELEASE_SECONDS


def test_a_defect_of_ours_is_shown_without_its_words() -> None:
    unknown = FarView().failed(RuntimeError("with a secret"), NOW).unknown(NOW)
    assert unknown == Unknown(NOW, "a defect of this end: RuntimeError")


def test_a_document_may_have_more_members_than_we_know() -> None:
    newer = {**DOCUMENT, "more": [1, None, {"x": "€ \U0001f600"}]}
    assert read_document(json.dumps(newer).encode(), "orange-grape") == newer
    assert read_document(nested(LEVELS_MAX - 1), "orange-grape")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"HTTP/1.1 200 connected",
        b"\xff\xfe\x00",
        b"[" * STATUS_SIZE_MAX,
        b'{"a":' * (STATUS_SIZE_MAX // 5),
        b"9" * 10_000,
        nested(LEVELS_MAX),
        nested(900),
        json.dumps(DOCUMENT).encode()[:-1] + b', "x": "\\ud800"}',
        json.dumps({**DOCUMENT, "side": "destination"}).encode(),
        json.dumps({**DOCUMENT, "link": "orange-melon"}).encode(),
        json.dumps({**DOCUMENT, "side": ["source"]}).encode(),
        json.dumps(DOCUMENT).encode()[:-1],
        json.dumps({**DOCUMENT, "x": float("nan")}).encode(),
        json.dumps(DOCUMENT).encode()[:-1] + b', "x": 1e999}',
    ],
    ids=lambda data: data[:20].decode("latin-1"),
)
def test_whatever_is_no_status_of_the_links_source_is_the_peers_error(data: bytes) -> None:
    with pytest.raises(PeerError, match="the source VM's end does not answer with"):
        read_document(data, "orange-grape")
