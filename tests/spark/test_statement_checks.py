"""Statements that are refused before anything runs, each with a line that names what to change, and its place."""

import textwrap

import pytest
from pyspark.sql import SparkSession

from appliance.sql.model.statement import Statement, StatementRefused
from appliance.sql.plan import check
from tests.support.spark_sql import session

__all__ = ["session"]

ROWS = {
    "SELECT value FROM records GROUP BY value": "GROUP BY",
    "SELECT value FROM records GROUP BY value HAVING true": "HAVING",
    "SELECT DISTINCT value FROM records": "DISTINCT",
    "SELECT value FROM records ORDER BY offset": "ORDER BY",
    "SELECT value FROM records SORT BY offset": "ORDER BY",
    "SELECT value FROM records DISTRIBUTE BY offset": "DISTRIBUTE BY",
    "SELECT value FROM records LIMIT 3": "LIMIT",
    "SELECT value FROM records OFFSET 3": "OFFSET",
    "SELECT value FROM records UNION ALL SELECT key FROM records": "UNION",
    "SELECT value FROM records EXCEPT SELECT key FROM records": "EXCEPT",
    "SELECT value FROM records INTERSECT SELECT key FROM records": "INTERSECT",
    "SELECT a.value FROM records AS a JOIN records AS b ON a.key = b.key": "join",
    "SELECT a.value FROM records AS a, records AS b": "join",
    "SELECT value FROM records, LATERAL (SELECT 1)": "LATERAL",
    "SELECT value FROM records LATERAL VIEW explode(headers) AS h": "LATERAL VIEW",
    "SELECT explode(array(key, value)) AS value FROM records": "explode",
    "SELECT json_tuple(string(value), 'a') AS value FROM records": "json_tuple",
    "SELECT stack(2, key, value) AS value FROM records": "stack",
    "SELECT string(count(*)) AS value FROM records": "count",
    "SELECT string(schema_of_variant_agg(parse_json(string(value)))) AS value FROM records": "schema_of_variant_agg",
    "SELECT max(value) OVER (ORDER BY offset) AS value FROM records": "OVER",
    "SELECT lag(value) OVER (ORDER BY offset) AS value FROM records": "OVER",
    "SELECT value FROM records WHERE key IN (SELECT key FROM records)": "IN (SELECT",
    "SELECT value FROM records WHERE EXISTS (SELECT 1)": "EXISTS",
    "SELECT (SELECT value) AS value FROM records": "subquery",
    "WITH r AS (SELECT * FROM records) SELECT * FROM r": "WITH",
    "SELECT /*+ REPARTITION(3) */ value FROM records": "hints",
    "SELECT value FROM records TABLESAMPLE (10 PERCENT)": "TABLESAMPLE",
    "SELECT value FROM range(3)": "table function",
    "SELECT col1 AS value FROM VALUES ('a')": "VALUES",
    "SELECT 'a' AS value": "no FROM",
    "SELECT value FROM parquet.`/etc`": "parquet./etc",
    "SELECT value FROM orders": "orders",
    "SELECT value FROM other.records": "other.records",
    "SELECT window(timestamp, '1 hour') AS value FROM records": "window",
    "SELECT session_window(timestamp, '1 hour') AS value FROM records": "session_window",
    "FROM records |> AGGREGATE count(*)": "",
}
COMMANDS = [
    "DROP TABLE records",
    "SET spark.sql.ansi.enabled = false",
    "CREATE TEMPORARY FUNCTION f AS 'X'",
    "INSERT INTO records VALUES (1)",
    "ADD JAR '/tmp/x.jar'",
    "CACHE TABLE records AS SELECT 1",
    "EXPLAIN SELECT value FROM records",
    "DESCRIBE records",
    "SHOW TABLES",
    "DECLARE x INT",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "SELECT value FROM records; DROP TABLE records",
    "BEGIN SELECT 1; END",
    "SELECT TRANSFORM(value) USING 'cat' AS (value) FROM records",
]
UNSTEADY = [
    "rand()",
    "rand(7)",
    "randn()",
    "uuid()",
    "randstr(3)",
    "uniform(1, 2)",
    "shuffle(array(1, 2))[0]",
    "now()",
    "current_timestamp()",
    "current_timestamp",
    "current_date",
    "current_time",
    "localtimestamp",
    "curdate()",
    "unix_timestamp()",
    "current_timezone()",
    "current_user",
    "user()",
    "session_user()",
    "current_database()",
    "current_catalog()",
    "version()",
    "spark_partition_id()",
    "monotonically_increasing_id()",
    "input_file_name()",
    "timestamp'now'",
    "TIMESTAMP 'tomorrow'",
    "DATE'today'",
    "date('yesterday')",
    "CAST(concat('to', 'day') AS DATE)",
    "to_timestamp('now')",
    "base64(aes_encrypt('a', key))",
    "base64(aes_encrypt('a', key, 'GCM', 'DEFAULT', ''))",
    "reflect('java.lang.System', 'getenv', 'HOME')",
    "java_method('java.lang.System', 'exit', 0)",
    "try_reflect('java.lang.System', 'nanoTime')",
    "from_avro(value, '{}')",
    "nosuch(value)",
    "builtin.rand()",
    "system.builtin.rand()",
    ":parameter",
    "?",
    "'${env:HOME}' || ${env:HOME}",
    "_end",
    "sales.orders.f(1)",
]


def refused(session: SparkSession, text: str, salted: bool = False) -> list[str]:
    with pytest.raises(StatementRefused) as refusal:
        check(session, Statement(text, "FILE"), salted)
    lines = str(refusal.value).splitlines()
    assert len(lines) in (1, 3), lines
    assert all("Project [" not in line and "org.apache" not in line for line in lines)
    return lines


@pytest.mark.parametrize(("text", "said"), ROWS.items(), ids=ROWS)
def test_whatever_looks_beyond_one_record_is_refused(session: SparkSession, text: str, said: str) -> None:
    assert said in refused(session, text)[0]


@pytest.mark.parametrize("text", COMMANDS)
def test_commands_are_refused_and_do_not_run(session: SparkSession, text: str) -> None:
    refused(session, text)
    assert session.conf.get("spark.sql.ansi.enabled") == "true"


@pytest.mark.parametrize("expression", UNSTEADY)
def test_what_may_differ_when_it_is_computed_again_is_refused(session: SparkSession, expression: str) -> None:
    refused(session, f"SELECT string({expression}) AS value FROM records")
    refused(session, f"SELECT key FROM records WHERE string({expression}) > 'a'")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "SELECT key,\n       vale\nFROM records",
            """\
            FILE: line 2, column 8: A column, variable, or function parameter with name `vale` cannot be resolved.
                       vale
                       ^^^^""",
        ),
        (
            "SELECT key value FROM records",
            """\
            FILE: line 1, column 8: write AS before value, if it is another name, or a comma, if it is a column
                SELECT key value FROM records
                       ^^^^^^^^^""",
        ),
        (
            "SELECT value\nFROM records WHERE",
            """\
            FILE: line 2, column 6: WHERE would be another name of records: write what belongs after it, or remove it
                FROM records WHERE
                     ^^^^^^^^^^^^^""",
        ),
        (
            "SELECT upper(value FROM records",
            """\
            FILE: line 1, column 20: Syntax error at or near 'FROM': missing ')'.
                SELECT upper(value FROM records
                                   ^""",
        ),
        (
            "SELECT\tkey + 1 AS value FROM records",
            """\
            FILE: line 1, column 8: Cannot resolve "(key + 1)" due to data type mismatch:
                SELECT\tkey + 1 AS value FROM records
                      \t^^^^^^^""",
        ),
    ],
    ids=["no such column", "a comma is missing", "an empty condition", "a bracket is missing", "types after a tab"],
)
def test_a_refusal_shows_its_place(session: SparkSession, text: str, shown: str) -> None:
    expected, *drawn = textwrap.dedent(shown).splitlines()
    first, *lines = refused(session, text)
    assert first.startswith(expected)
    assert lines == drawn


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT topic AS value, offset AS key FROM records", "the column key is BIGINT: expected BINARY or STRING"),
        ("SELECT value, offset + 1 AS offset FROM records", "the column offset stays as it is in the record"),
        ("SELECT 'x' AS topic FROM records", "the column topic stays as it is in the record"),
        ("SELECT value, 1 AS n FROM records", "the column n is none of key, value and headers"),
        ("SELECT upper(string(value)) FROM records", "is none of key, value and headers"),
        ("SELECT value, key AS value FROM records", "the column value stands twice"),
        ("SELECT offset FROM records", "none of key, value and headers"),
        ("SELECT map('a', value) AS headers FROM records", "expected ARRAY<STRUCT<key: STRING, value: BINARY>>"),
        ("SELECT array(struct('a', value)) AS headers FROM records", "expected ARRAY<STRUCT"),
        ("SELECT array(named_struct('value', value, 'key', 'a')) AS headers FROM records", "expected ARRAY<STRUCT"),
    ],
)
def test_the_result_has_the_columns_and_types_of_a_record(session: SparkSession, text: str, said: str) -> None:
    assert said in refused(session, text)[0]


@pytest.mark.parametrize(
    "expression",
    [
        "salt",
        "concat(salt, string(key))",
        "upper(salt)",
        "sha2(string(int(salt)), 256)",
        "md5(salt)",
        "sha2(string(length(salt)), 256)",
        "if(salt > 'm', 'a', 'b')",
        "hmac(key, salt, salt)",
        "hmac(salt, key, concat('SHA', salt))",
    ],
)
def test_the_salt_is_hashed_alone(session: SparkSession, expression: str) -> None:
    text = f"SELECT {expression} AS value FROM records"
    assert "salt is hashed alone" in refused(session, text, salted=True)[0]
    inner = f"SELECT sha2(s, 256) AS value FROM (SELECT {expression} AS s FROM records)"
    assert "salt is hashed alone" in refused(session, inner, salted=True)[0]
    assert "salt" in refused(session, text)[0]


@pytest.mark.parametrize(
    "expression",
    [
        "aes_encrypt(value, 'Hidden-of-16-byt')",
        "aes_encrypt(value, 'Hidden-of-16-byt', 'ECB')",
        "aes_encrypt(value, unhex(concat('48696464656e', '2d6f662d31362d627974')), 'ECB')",
        "aes_decrypt(value, concat('Hidden-of-16-by', string(topic)))",
        "try_aes_decrypt(value, 'Hidden-of-16-byt')",
        "hmac('Hidden', value)",
        "hmac(k, value)",
    ],
)
def test_case_1003_a_key_in_the_text_is_refused_by_a_line_that_does_not_show_it(
    session: SparkSession, expression: str
) -> None:
    # The text stands in status, its JSON, the positions topic and Spark's plans.
    text = f"SELECT {expression} AS value FROM (SELECT *, 'Hidden' AS k FROM records)"
    (line,) = refused(session, text, salted=True)
    assert "put it into REPLICA_TRANSFORM_SALT_FILE's file" in line
    assert "Hidden" not in line
    assert refused(session, text) == [line]


def test_an_earlier_statement_that_is_verified_may_have_a_key_in_its_text(session: SparkSession) -> None:
    check(session, Statement("SELECT hmac('Hidden', value) AS key FROM records", earlier=True), salted=True)


def test_a_key_is_the_salt_which_no_cipher_takes_as_its_input(session: SparkSession) -> None:
    text = "SELECT aes_encrypt(salt, sha2(salt, 256), 'ECB') AS value FROM records"
    assert "salt is hashed alone" in refused(session, text, salted=True)[0]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("SELECT salt AS value FROM (SELECT * FROM records)", "salt"),
        ("SELECT r.SALT AS value FROM (SELECT * FROM records) AS r", "r.SALT"),
        ("SELECT s AS value FROM (SELECT *, salt AS s FROM records)", "salt"),
        ("SELECT s AS value FROM (SELECT salt AS s FROM records)", "salt"),
        ("SELECT * FROM (SELECT salt AS salt, value FROM records)", "salt"),
        ("SELECT upper(salt) AS value FROM (SELECT * FROM records)", "salt"),
        ("SELECT * FROM records WHERE salt > 'm'", "salt"),
        ("SELECT * EXCEPT (value), salt AS value FROM records", "salt"),
        ("SELECT to_json(struct(*)) AS value FROM records", "struct(*)"),
        ("SELECT to_json(struct(r.*)) AS value FROM records AS r", "struct(r.*)"),
        ("SELECT to_json(struct(* EXCEPT (key))) AS value FROM records", "struct(* EXCEPT (key))"),
        ("SELECT string(s.salt) AS value FROM (SELECT struct(*) AS s FROM records)", "struct(*)"),
        ("SELECT concat_ws('', array(*)) AS value FROM (SELECT topic, salt FROM records)", "array(*)"),
        ("SELECT concat(*) AS value FROM (SELECT topic, salt FROM records)", "concat(*)"),
        ("SELECT * FROM records WHERE to_json(struct(*)) > 'm'", "struct(*)"),
        ("SELECT * FROM records WHERE topic = 'a' AND `salt` > topic", "`salt`"),
        ("SELECT key, to_json(struct(topic, *)) AS value FROM records WHERE topic = 'a'", "struct(topic, *)"),
        ("SELECT to_json(struct(sha2(salt, 256) AS h, *)) AS value FROM records", "struct(sha2(salt, 256) AS h, *)"),
    ],
)
def test_case_500_a_star_passes_the_salt_on_and_puts_it_into_nothing(
    session: SparkSession, text: str, marked: str
) -> None:
    # to_json(struct(*)) published the salt in every record.
    reason, line, marks = refused(session, text, salted=True)
    assert line[marks.index("^") :][: marks.count("^")] == marked
    assert "salt is hashed alone" in reason
    assert ("the star takes salt along" in reason and "name the columns" in reason) == ("*" in marked)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("SELECT sha2(salt, 256) AS key, concat(topic, r.salt) AS value FROM records AS r", "r.salt"),
        ("SELECT string(2 * length(salt)) AS value FROM records", "salt"),
        ("SELECT key, salt FROM records", "salt"),
    ],
)
def test_a_refusal_of_the_salt_shows_where_it_stands(session: SparkSession, text: str, marked: str) -> None:
    reason, line, marks = refused(session, text, salted=True)
    assert "salt is hashed alone" in reason
    assert line[marks.index("^") :][: marks.count("^")] == marked


@pytest.mark.parametrize(
    "text",
    [
        "SELECT to_json(struct(*)) AS value FROM records",
        "SELECT to_json(struct(r.* EXCEPT (key))) AS value FROM records AS r WHERE to_json(struct(*)) > 'm'",
        "SELECT concat_ws('', array(*)) AS value FROM (SELECT topic, string(key) AS k FROM records)",
        "SELECT to_json(struct(*)) AS value FROM (SELECT string(value) AS salt, 'g' AS unit FROM records)",
    ],
)
def test_a_star_that_takes_no_salt_along_may_stand_in_an_expression(session: SparkSession, text: str) -> None:
    check(session, Statement(text), salted=False)
    own = text.replace("FROM records", "FROM (SELECT * EXCEPT (salt) FROM records)")
    check(session, Statement(own), salted=True)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM records",
        "SELECT key, value, headers FROM records WHERE topic = 'orders' AND string(value) RLIKE 'x'",
        "SELECT r.value FROM (SELECT * FROM records WHERE key IS NOT NULL) AS r WHERE r.offset % 2 = 0;",
        "SELECT * FROM records WHERE topic = 'orders'",
        "SELECT s.* FROM (SELECT r.* FROM records AS r) AS s",
        "SELECT * EXCEPT (key) FROM records",
        "FROM records |> SET key = value",
        "SELECT * EXCEPT (key), sha2(concat(salt, string(key)), 256) AS key FROM records",
        "SELECT sha2(concat(salt, k), 256) AS key FROM (SELECT *, string(key) AS k FROM records)",
        "SELECT sha2(concat_ws('-', *), 256) AS key FROM (SELECT salt, topic FROM records)",
        "SELECT value, offset FROM records -- a comment",
        "SELECT sha2(concat(salt, string(key)), 256) AS key FROM records",
        "SELECT hmac(salt, key, 'SHA256') AS key FROM records",
        "SELECT concat_ws('-', topic, partition, offset) AS key FROM records",
        "SELECT to_json(transform_values(from_json(string(value), 'map<string,string>'), (k, v) -> mask(v))) AS value "
        "FROM records",
        "SELECT CASE WHEN topic = 'a' THEN value ELSE aes_encrypt(value, unhex(sha2(salt, 256)), "
        "'ECB') END AS value FROM records",
        "SELECT aes_decrypt(value, unhex(salt)) AS value FROM records",
        "SELECT aes_encrypt(value, salt, 'GCM', 'DEFAULT', substring(key, 1, 12)) AS value FROM records",
        "SELECT aes_encrypt(value, unhex(salt), 'GCM', 'DEFAULT', substring(unhex(sha2(concat(salt, string(timestamp), "
        "string(offset), string(value)), 256)), 1, 12)) AS value FROM records",
        "SELECT hmac(key, value) AS key FROM records",
        "SELECT date_format(timestamp, 'yyyy-MM-dd') AS key, filter(headers, h -> h.key <> 'secret') AS headers "
        "FROM records WHERE timestamp > TIMESTAMP '2026-01-01'",
        "FROM records SELECT value WHERE value IS NOT NULL",
        "SELECT x AS key, upper(x) AS value FROM (SELECT lower(string(key)) AS x FROM records)",
        "SELECT lower(string(key)) AS key, concat(string(key), '!') AS value FROM records",
    ],
)
def test_what_projects_and_filters_is_accepted(session: SparkSession, text: str) -> None:
    check(session, Statement(text), salted=True)
