"""The listener of PROGRESS_LISTENER, whatever it does."""

import logging
import threading
from pathlib import Path

import pytest

from appliance.errors import SettingsError
from appliance.spark.query_listener import _WAITING, QueryListener, listening

EVENT: dict[str, object] = {"id": "5" * 32, "runId": "6" * 32}


def written(directory: Path, text: str) -> str:
    """The path of a file of Python."""
    path = directory / "listener.py"
    path.write_text(text)
    return str(path)


def test_a_function_gets_each_progress_as_it_is(tmp_path: Path) -> None:
    name = written(tmp_path, "seen = []\n\ndef see(progress):\n    seen.append(progress)\n")
    with listening(f"{name}:see") as listener:
        assert listener
        listener.started(EVENT)
        listener.progressed({"progress": {"numInputRows": 3}})
        listener.idle(EVENT)
        seen = listener._listener.__globals__["seen"]
    assert seen == [{"numInputRows": 3}]


@pytest.mark.parametrize(
    ("text", "name", "cause"),
    [
        ("", "missing", "AttributeError"),
        ("value = 3\n", "value", "expected a function, or a StreamingQueryListener"),
        ("import nowhere_at_all\n", "value", "ModuleNotFoundError"),
        ("def broken(:\n", "value", "SyntaxError"),
    ],
)
def test_what_is_no_listener_is_refused_before_anything_starts(
    tmp_path: Path, text: str, name: str, cause: str
) -> None:
    with (
        pytest.raises(SettingsError, match=rf"PROGRESS_LISTENER=.*:{name}: .*{cause}"),
        listening(f"{written(tmp_path, text)}:{name}"),
    ):
        pass


def test_an_error_of_the_listener_is_logged_once_and_the_next_event_comes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = written(
        tmp_path, "seen = []\n\ndef see(progress):\n    seen.append(progress)\n    raise ValueError('broken')\n"
    )
    with caplog.at_level(logging.WARNING), listening(f"{name}:see") as listener:
        assert listener
        for number in range(3):
            listener.progressed({"progress": {"batchId": number}})
        seen = listener._listener.__globals__["seen"]
    assert [each["batchId"] for each in seen] == [0, 1, 2]
    assert [record.getMessage() for record in caplog.records] == [f"PROGRESS_LISTENER={name}:see: ValueError: broken"]


def test_a_listener_that_hangs_holds_nobody_up_and_further_events_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, release = threading.Event(), threading.Event()

    def see(_: object) -> None:
        begun.set()
        release.wait()

    listener = QueryListener("hanging", see)
    with caplog.at_level(logging.WARNING):
        listener.progressed({"progress": {}})
        begun.wait()
        for _ in range(_WAITING + 2):
            listener.progressed({"progress": {}})
    assert len(caplog.records) == 1
    assert "the next ones are left out" in caplog.text
    release.set()
    listener.end(None)
