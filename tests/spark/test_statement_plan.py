"""A statement over records: each row comes out, in its order, with what has become of its record."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from appliance.sql.model.statement import GROWN, KEPT, OPAQUE, OUTCOME, RANGE, ROOM, TEXTS, Statement
from appliance.sql.plan import contents, failure, needed, outcomes
from tests.support.spark_sql import Row, end, records, session

__all__ = ["session"]


KEY, VALUE = TEXTS.values()
AS_TEXTS = [f"CAST({name} AS STRING) AS {text}" for name, text in TEXTS.items()]


def run(session: SparkSession, text: str, *rows: Row, salt: str | None = None) -> list[Any]:
    return outcomes(session, Statement(text), records(session, rows, salt)).collect()


def values(rows: list[Any]) -> list[Any]:
    return [row.value and bytes(row.value) for row in rows]


def test_a_field_is_masked_and_what_is_not_selected_stays(session: SparkSession) -> None:
    text = """SELECT to_json(named_struct('id', get_json_object(string(value), '$.id'), 'card', '****')) AS value
              FROM records"""
    (row,) = run(session, text, Row(b"k", b'{"id":1,"card":"4111"}', [("h", b"1"), ("g", None)], offset=7, partition=3))
    assert bytes(row.value) == b'{"id":"1","card":"****"}'
    assert (bytes(row.key), row.offset, row.partition, row.topic) == (b"k", 7, 3, "orders")
    assert [(header.key, header.value and bytes(header.value)) for header in row.headers] == [("h", b"1"), ("g", None)]
    assert row[KEPT] is True


def test_what_is_filtered_comes_out_in_its_place_without_content(session: SparkSession) -> None:
    rows = [Row(value=text, headers=[("h", b"1")], offset=number) for number, text in enumerate([b"a", b"b", None])]
    out = run(session, "SELECT * FROM records WHERE value <> 'a'", *rows)
    assert [row[KEPT] for row in out] == [False, True, False]
    assert [row.offset for row in out] == [0, 1, 2]
    assert [(row.key, row.value, row.headers) for row in out if not row[KEPT]] == [(None, None, None)] * 2


def test_a_record_that_it_fails_on_is_marked_and_unchanged_and_stops_no_other(session: SparkSession) -> None:
    text = "SELECT string(int(string(value)) + 1) AS value FROM records WHERE int(string(value)) > 0"
    out = run(session, text, Row(value=b"1"), Row(value=b"x"), Row(value=b"0"), Row(value=b"3"))
    assert [row[KEPT] for row in out] == [True, None, False, True]
    assert values(out) == [b"2", b"x", None, b"4"]


def test_the_end_of_a_range_passes_by_what_would_fail_on_it(session: SparkSession) -> None:
    text = "SELECT string(1 / 0) AS value FROM records WHERE assert_true(key IS NOT NULL) IS NULL AND value = 'y'"
    out = run(session, text, Row(value=b"x"), end(9))
    assert [(row[KEPT], row._end, row.value) for row in out] == [(False, None, None), (None, 9, None)]
    assert [(row[KEPT], row._end) for row in run(session, "TABLE records", Row(), end(3))] == [(True, None), (None, 3)]


def test_a_select_below_a_select_is_computed_once_for_each_record(session: SparkSession) -> None:
    text = """SELECT j.a AS key, j.b AS value FROM (
                  SELECT from_json(string(value), 'a STRING, b STRING', map('mode', 'FAILFAST')) AS j, offset
                  FROM records WHERE offset > 0) AS parsed
              WHERE j.a <> 'drop'"""
    frame = outcomes(session, Statement(text), records(session, [
        Row(value=b'{"a":"1"}'), Row(value=b'{"a":"1","b":"2"}', offset=1), Row(value=b'{"a":"drop"}', offset=2),
        Row(value=b"{", offset=3), end(4)]))  # fmt: skip
    out = frame.collect()
    assert [row[KEPT] for row in out] == [False, True, False, None, None]
    assert (bytes(out[1].key), bytes(out[1].value), bytes(out[3].value)) == (b"1", b"2", b"{")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("from_json") == 1
    assert "Filter" not in plan


def test_a_condition_stands_before_what_it_protects(session: SparkSession) -> None:
    text = "SELECT string(10 / int(string(value))) AS value FROM records WHERE string(value) <> '0'"
    assert values(run(session, text, Row(value=b"0"), Row(value=b"5"))) == [None, b"2.0"]


def test_null_is_a_tombstone_and_columns_may_change_places(session: SparkSession) -> None:
    out = run(session, "SELECT value AS key, NULL AS value FROM records", Row(b"k", b"v"))
    assert [(bytes(row.key), row.value) for row in out] == [(b"v", None)]


def test_headers_are_made_of_names_and_values(session: SparkSession) -> None:
    text = "SELECT array_append(headers, named_struct('key', 'topic', 'value', binary(topic))) AS headers FROM records"
    (row,) = run(session, text, Row(headers=[("h", b"1")]))
    assert [(header.key, bytes(header.value)) for header in row.headers] == [("h", b"1"), ("topic", b"orders")]
    (row,) = run(session, "SELECT NULL AS headers FROM records", Row(headers=[("h", b"1")]))
    assert row.headers == []
    nameless = Statement("SELECT array(named_struct('key', STRING(NULL), 'value', value)) AS headers FROM records")
    assert outcomes(session, nameless, records(session, [Row()])).collect()[0][KEPT] is None
    assert failure(session, nameless, records(session, [Row()])) == "a header has no key"


def test_a_salted_hash_shows_its_salt_in_no_plan_and_no_reason(session: SparkSession) -> None:
    salt = "r8Kq-not-to-be-seen"
    text = "SELECT sha2(concat(salt, string(key)), 256) AS key FROM records"
    frame = outcomes(session, Statement(text), records(session, [Row(b"k")], salt))
    assert bytes(frame.collect()[0].key) == (session.sql(f"SELECT sha2('{salt}k', 256)").collect()[0][0].encode())
    assert salt not in frame._jdf.queryExecution().toString()
    assert "salt" not in frame.columns
    failing = "SELECT sha2(concat(salt, string(int(string(key)))), 256) AS key FROM records"
    reason = failure(session, Statement(failing), records(session, [Row(b"k")], salt))
    assert reason == 'CAST_INVALID_INPUT: sourceType "STRING", targetType "INT" in int(string(key))'


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("int(string(value))", 'CAST_INVALID_INPUT: sourceType "STRING", targetType "INT" in int(string(value))'),
        ("array(1, 2)[length(value)]", "INVALID_ARRAY_INDEX in array(1, 2)[length(value)]"),
        ("to_date(string(value), 'yyyy')", "CANNOT_PARSE_TIMESTAMP"),
        ("raise_error(string(value))", "USER_RAISED_EXCEPTION"),
        ("raise_error('no card')", "no card"),
        ("assert_true(false, string(value))", "USER_RAISED_EXCEPTION"),
        ("parse_json(string(value))", "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION"),
        ("url_decode(concat('%', string(value)))", "CANNOT_DECODE_URL"),
        ("variant_get(parse_json('\"SECRET\"'), '$', 'int')", 'INVALID_VARIANT_CAST: dataType "INT"'),
        ("map_from_arrays(array(string(value), string(value)), array(1, 2))['a']", "DUPLICATED_MAP_KEY"),
        ("split(string(value), concat('[', string(value)))[0]", "java.util.regex.PatternSyntaxException"),
        (
            "hmac(value, value, string(value))",
            "INVALID_PARAMETER_VALUE.HMAC_ALGORITHM: functionName `hmac`, parameter `algorithm`",
        ),
    ],
)
def test_case_1004_the_reason_of_a_failure_is_one_line_with_nothing_of_the_record(
    session: SparkSession, expression: str, reason: str
) -> None:
    # Spark's words with the value stood in the positions topic, status, dead letters and the log.
    text = f"SELECT string({expression}) AS value FROM records"
    assert failure(session, Statement(text), records(session, [Row(value=b"SECRET")])) == reason


def test_a_record_that_does_not_fail_has_no_reason(session: SparkSession) -> None:
    text = "SELECT string(int(string(value))) AS value FROM records"
    assert failure(session, Statement(text), records(session, [Row(value=b"1")])) == ""


@pytest.mark.parametrize("text", ["TABLE records", "FROM records", "SELECT key, value, headers FROM records AS r"])
def test_a_statement_that_changes_nothing_keeps_all(session: SparkSession, text: str) -> None:
    (row,) = run(session, text, Row(b"k", b"v", [("h", None)]))
    assert (bytes(row.key), bytes(row.value), row[KEPT]) == (b"k", b"v", True)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("TABLE records", {KEY, VALUE, OPAQUE}),
        ("SELECT value AS key FROM records", {VALUE, OPAQUE}),
        ("SELECT string(key) AS value, binary(string(value)) AS key FROM records", {KEY, VALUE, OPAQUE}),
        ("SELECT NULL AS key, binary(Topic) AS value FROM records", {"topic", OPAQUE}),
        ("SELECT * FROM records WHERE exists(HEADERS, h -> h.key = 'h')", {KEY, VALUE, "headers", OPAQUE}),
        ("SELECT filter(headers, h -> h.key <> 'h') AS headers FROM records", {KEY, VALUE, "headers"}),
        (
            "SELECT key FROM (SELECT key, partition AS p FROM records) AS s WHERE p = 3",
            {KEY, VALUE, "partition", OPAQUE},
        ),
        ("SELECT string(timestamp) AS value FROM records WHERE timestamp_type = 0", {KEY, "timestamp_type", OPAQUE}),
        ("SELECT string(10 / offset) AS value FROM records WHERE offset <> 1", {KEY, OPAQUE}),
    ],
)
def test_the_columns_that_a_replicator_gives_are_enough(session: SparkSession, text: str, seen: set[str]) -> None:
    rows = [
        Row(b"k", b"v\xff\0", [("h", b"1"), ("g", None)], "orders", partition, partition) for partition in (0, 1, 3)
    ]
    whole, wanted = records(session, [*rows, end(2)]), needed(session, Statement(text), salted=False)
    assert {*wanted.inputs} - {RANGE, "offset", "timestamp", "_end", ROOM} == seen
    more = f"0 AS {RANGE}", f"binary(string(offset)) AS {OPAQUE}", f"100 AS {ROOM}", *AS_TEXTS
    given = whole.selectExpr("*", *more).select(*wanted.inputs)
    made = contents(session, Statement(text), given, wanted.outputs)
    out = made.withColumns({name: made[name].cast("binary") for name in (KEY, VALUE)}).collect()
    expected = [row for row in outcomes(session, Statement(text), whole).collect() if row[KEPT] is not False]
    assert [row[OUTCOME] for row in out] == [2 if row._end is not None else row[KEPT] for row in expected]
    assert made._jdf.queryExecution().executedPlan().toString().count("tryeval") <= 1
    kept = [(row, other) for row, other in zip(out, expected, strict=True) if other[KEPT]]
    assert [(row.offset, row.timestamp, row[KEY], row[VALUE]) for row, _ in kept] == [
        (row.offset, row.timestamp, row.key, row.value) for _, row in kept
    ]
    if OPAQUE in seen:
        assert [bytes(row[OPAQUE]) for row, _ in kept] == [b"%d" % row.offset for row, _ in kept]
    else:
        assert [row.headers for row, _ in kept] == [row.headers for _, row in kept]


def test_case_572_a_cast_to_a_string_with_a_collation_keeps_it(session: SparkSession) -> None:
    # The column in the cast's place compared bytes: a condition in UTF8_LCASE left records out.
    value, other = (f"CAST({each} AS STRING COLLATE UTF8_LCASE)" for each in ("value", "'VALUE'"))
    statement = Statement(f"SELECT key FROM records WHERE {value} = {other}")
    whole, wanted = records(session, [Row()]), needed(session, statement, salted=False)
    assert [row[KEPT] for row in outcomes(session, statement, whole).collect()] == [True]
    given = whole.selectExpr("*", f"0 AS {RANGE}", f"binary('') AS {OPAQUE}", *AS_TEXTS).select(*wanted.inputs)
    assert [row[OUTCOME] for row in contents(session, statement, given, wanted.outputs).collect()] == [1]


def test_a_column_that_is_not_given_is_never_taken_for_null(session: SparkSession) -> None:
    given = records(session, [Row()]).selectExpr("offset", "timestamp", f"100 AS {ROOM}", "_end")
    statement = Statement("SELECT string(topic IS NULL) AS value FROM records")
    (row,) = contents(session, statement, given, [VALUE, OUTCOME]).collect()
    assert row[OUTCOME] is None


@pytest.mark.parametrize(
    "output",
    [
        "repeat(string(value), 26) AS value",
        "binary(repeat('x', 130)) AS key",
        "repeat(string(value), 16) AS value, repeat(string(key), 16) AS key",
        "array(named_struct('key', repeat('h',50), 'value', value), named_struct('key','g', 'value',NULL)) AS headers",
    ],
)
def test_a_record_that_grows_beyond_its_room_comes_out_without_content(session: SparkSession, output: str) -> None:
    rows = [Row(b"abcd", b"12345" * 5), Row(b"ab", b"1"), end(2)]
    wanted = needed(session, Statement(f"SELECT {output} FROM records WHERE length(key) > 0"), salted=False)
    more = f"0 AS {RANGE}", f"binary('') AS {OPAQUE}", f"if(length(key) = 4, 100, 100000) AS {ROOM}", *AS_TEXTS
    given = records(session, rows).selectExpr("*", *more).select(*wanted.inputs)
    out = contents(session, Statement(f"SELECT {output} FROM records WHERE length(key) > 0"), given, wanted.outputs)
    large, small, mark = out.collect()
    assert (large[OUTCOME], small[OUTCOME], mark[OUTCOME]) == (GROWN, 1, 2)
    assert (large[KEY], large[VALUE], large[wanted.outputs[5]]) == (None, None, None)


def test_a_timestamp_is_one_of_sparks_and_stays_to_the_millisecond(session: SparkSession) -> None:
    text = "SELECT string(timestamp) AS key FROM records WHERE timestamp >= '2023-11-14T22:13:20Z'"
    out = run(session, text, Row(timestamp=1_700_000_000_123), Row(timestamp=1_699_999_999_999), Row(timestamp=2**62))
    assert [(row.key and bytes(row.key), row.timestamp, row[KEPT]) for row in out] == [
        (b"2023-11-14 22:13:20.123", 1_700_000_000_123, True),
        (None, 1_699_999_999_999, False),
        (b"key", 2**62, None),
    ]
    assert run(session, "SELECT value FROM records WHERE offset = 0", Row(timestamp=2**62))[0].timestamp == 2**62


def test_a_record_is_encrypted_by_the_salt_which_stands_in_no_plan(session: SparkSession) -> None:
    salt = "00112233445566778899aabbccddeeff"
    text = "SELECT aes_encrypt(value, unhex(salt), 'ECB') AS value FROM records"
    frame = outcomes(session, Statement(text), records(session, [Row(value=b"v")], salt))
    expected = session.sql(f"SELECT aes_encrypt('v', unhex('{salt}'), 'ECB')").collect()[0][0]
    assert bytes(frame.collect()[0].value) == bytes(expected)
    assert salt not in frame._jdf.queryExecution().toString()
    reason = failure(session, Statement(text), records(session, [Row(value=b"v")], "0011223344"))
    assert reason.startswith("INVALID_PARAMETER_VALUE.AES_KEY_LENGTH")
    assert "0011223344" not in reason
