import json
import logging
import re
import subprocess
import sys
from types import TracebackType

import pytest

from appliance.errors import IdentityRefused
from appliance.runtime.log import JsonFormatter, TextFormatter
from appliance.settings.secret import Secret

MOMENT = 1795229151.1234
ExceptionInformation = tuple[type[BaseException], BaseException, TracebackType | None]


def record(
    message: str = "connection closed",
    fields: dict[str, object] | None = None,
    level: int = logging.INFO,
    exc_info: ExceptionInformation | None = None,
) -> logging.LogRecord:
    made = logging.LogRecord("appliance.tunnel", level, __file__, 1, message, (), exc_info)
    made.created = MOMENT
    if fields is not None:
        made.fields = fields
    return made


def raised(error: Exception) -> ExceptionInformation:
    try:
        raise error
    except type(error):
        information = sys.exc_info()
    assert information[0]
    return information


def test_a_text_line_has_utc_time_level_room_message_and_fields() -> None:
    line = TextFormatter().format(record(fields={"peer": "10.0.0.7", "bytes": 4711}))
    assert line == "2026-11-21T02:45:51.123Z INFO  tunnel: connection closed peer=10.0.0.7 bytes=4711"


@pytest.mark.parametrize(
    ("level", "word"),
    [
        (logging.DEBUG, "DEBUG"),
        (logging.WARNING, "WARN "),
        (logging.ERROR, "ERROR"),
        (logging.CRITICAL, "FATAL"),
    ],
)
def test_every_level_takes_five_columns(level: int, word: str) -> None:
    assert TextFormatter().format(record(level=level)).split("Z ")[1] == f"{word} tunnel: connection closed"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("two words", '"two words"'),
        ("", '""'),
        ("a=b", '"a=b"'),
        ('say "hi"', r'"say \"hi\""'),
        ("orange\n2026-11-21T02:45:51.123Z INFO  forged", r'"orange\n2026-11-21T02:45:51.123Z INFO  forged"'),
        ("\x1b[2J\x85\u2028", r'"\x1b[2J\x85\u2028"'),
        ("zwölf", "zwölf"),
        (None, "None"),
        (Secret("hunter2"), "****"),
    ],
)
def test_a_value_stays_one_word_on_one_line(value: object, shown: str) -> None:
    line = TextFormatter().format(record(fields={"value": value}))
    assert line.endswith(f" value={shown}")
    assert line.isprintable()


def test_a_message_with_a_newline_stays_on_one_line() -> None:
    assert TextFormatter().format(record("one\ntwo")).endswith(r"tunnel: one\ntwo")


def test_an_exception_is_part_of_the_line_unless_tracebacks_are_wanted() -> None:
    failed = record("dial failed", {"target": "b0:9092"}, logging.ERROR, raised(IdentityRefused("another link's end")))

    line = TextFormatter().format(failed)
    assert line.endswith("""dial failed target=b0:9092 error="IdentityRefused: another link's end\"""")
    first, *traceback = TextFormatter(traceback=True).format(failed).splitlines()
    assert first == line
    assert traceback[0].startswith("  Traceback")


def test_a_json_line_is_one_object_with_the_fields_in_their_types() -> None:
    line = JsonFormatter().format(record("one\ntwo", {"bytes": 4711, "secret": Secret("hunter2")}))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2026-11-21T02:45:51.123Z",
        "level": "info",
        "logger": "tunnel",
        "message": "one\ntwo",
        "fields": {"bytes": 4711, "secret": "****"},
    }


def test_a_json_line_holds_the_exception_and_when_wanted_its_traceback() -> None:
    failed = record(exc_info=raised(IdentityRefused("no")))

    assert json.loads(JsonFormatter().format(failed))["error"] == "IdentityRefused: no"
    assert "traceback" not in json.loads(JsonFormatter().format(failed))
    line = JsonFormatter(traceback=True).format(failed)
    assert "\n" not in line
    assert json.loads(line)["traceback"].startswith("Traceback")


PROGRAM = """
import logging, sys
from appliance.runtime.log import configure
from appliance.settings.values import LogFormat, LogSettings

configure(LogSettings(LogFormat(sys.argv[1]), "error"))
configure(LogSettings(LogFormat(sys.argv[1]), sys.argv[2]))
logging.getLogger("library").info("library talk")
logging.getLogger("library").warning("library warning")
log = logging.getLogger("appliance.dns")
log.debug("query")
log.info("listening", extra={"fields": {"port": 53}})
"""


def logged(form: str, level: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, form, level], capture_output=True, check=True, text=True, timeout=30
    )
    assert run.stdout == ""
    return [re.sub(r"^\S+Z ", "", line) for line in run.stderr.splitlines()]


def test_configured_twice_a_line_comes_once_on_stderr_and_libraries_only_from_warning_on() -> None:
    assert logged("text", "info") == ["WARN  library: library warning", "INFO  dns: listening port=53"]


def test_at_level_debug_the_appliance_says_more_and_libraries_do_not() -> None:
    assert logged("text", "debug") == [
        "WARN  library: library warning",
        "DEBUG dns: query",
        "INFO  dns: listening port=53",
    ]


def test_json_is_chosen_by_the_settings() -> None:
    assert [json.loads(line)["message"] for line in logged("json", "info")] == ["library warning", "listening"]
