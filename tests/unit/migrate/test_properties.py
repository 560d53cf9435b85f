import pytest

from appliance.errors import SettingsError
from appliance.migrate.model.properties import NOTHING, alternation, expression, names, read_connector, read_properties


def test_a_properties_file_is_read_as_java_reads_it() -> None:
    content = (
        b"# comment\n! comment\n\n  a = 1 \nb:2\nc 3\nd\\ e = \\u00e4\\t\\x\ntopics = .*[\\-\\.]internal, \\\n   x\n"
        b"path=C:\\\\k\nlatin=\xe4\nempty=\n"
    )
    assert read_properties("f", content).values == {
        "a": "1 ",
        "b": "2",
        "c": "3",
        "d e": "ä\tx",
        "topics": ".*[-.]internal, x",
        "path": "C:\\k",
        "latin": "ä",
        "empty": "",
    }


def test_of_a_key_that_is_given_twice_the_last_counts_and_it_is_named() -> None:
    found = read_properties("f", b"a=1\nb=2\na=3\n")
    assert (found.values, found.repeated) == ({"a": "3", "b": "2"}, ("a",))


def test_case_1034_a_file_of_line_ends_or_of_many_keys_is_read() -> None:
    # The time grew with the square of the size: 20,000 line ends took 10 s, and 10,000 keys 4 s.
    assert read_connector("f", b"\n" * 2**20).values == {}
    assert len(read_properties("f", b"".join(b"k%d=\n" % number for number in range(200_000))).values) == 200_000


@pytest.mark.parametrize("content", [b'{"a":' * 100_000, b'{"config":' + b"[" * 100_000])
def test_case_1034_deep_json_is_refused(content: bytes) -> None:
    with pytest.raises(SettingsError, match=r"^f: expected JSON: .*$"):
        read_connector("f", content)


def test_case_1034_half_of_a_pair_of_escapes_is_refused_where_it_is_read() -> None:
    for read, content in ((read_properties, b"a=x\\ud800\n"), (read_connector, b'{"a": "x\\udc00"}')):
        with pytest.raises(SettingsError, match=r"^f: 'a': expected text, got half of a pair of \\u escapes$"):
            read("f", content)
    assert read_properties("f", b"a=\\ud83d\\ude00").values == {"a": "\U0001f600"}


@pytest.mark.parametrize("begins", [b"", b"{ ", b"{\r\n  ", b"---\n"])
def test_a_strimzi_resource_is_named(begins: bytes) -> None:
    with pytest.raises(SettingsError, match="a KafkaMirrorMaker2 of Strimzi"):
        read_connector("f", begins + b'"kind": "KafkaMirrorMaker2"')


def test_an_escape_that_java_refuses_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^f: expected four hexadecimal digits after \\u$"):
        read_properties("f", b"a=\\u12g4")


@pytest.mark.parametrize(
    "content",
    [
        b'{"name": "n", "config": {"a": 1, "b": true, "c": "x", "d": null}}',
        b'{"name": "n", "a": 1, "b": true, "c": "x", "d": null}',
    ],
    ids=["as connect takes it", "flat"],
)
def test_a_connectors_json_is_read_as_connects_texts(content: bytes) -> None:
    assert read_connector("f", content).values == {"name": "n", "a": "1", "b": "true", "c": "x", "d": ""}


def test_a_connector_may_be_a_properties_file() -> None:
    assert read_connector("f", b"name=n\na=1\n").values == {"name": "n", "a": "1"}


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"{", "f: expected JSON"),
        (b'{"a": [1]}', "f: a: expected a text"),
        (b'{"config": {"a": {}}}', "f: a: expected a text"),
    ],
)
def test_other_json_is_refused(content: bytes, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        read_connector("f", content)


@pytest.mark.parametrize(
    ("listed", "joined"),
    [
        (".*", ".*"),
        (r"a\..*, b ,c", r"a\..*|b|c"),
        ("", NOTHING),
        ("  ", NOTHING),
    ],
)
def test_a_list_becomes_one_expression_as_mirror_maker_joins_it(listed: str, joined: str) -> None:
    assert alternation(listed) == joined


def test_a_list_is_split_at_commas_in_brackets_too_as_mirror_maker_does() -> None:
    assert alternation("[a,b]") == "[a|b]"
    with pytest.raises(ValueError, match="Python does not read"):
        alternation("(a,b")


@pytest.mark.parametrize("java", [r"\p{Alnum}+", r"\Qa.b\E", "(?<name>a)", "[a-z&&[^b]]", "[[a-c]x]"])
def test_an_expression_that_python_reads_in_another_way_than_java_is_refused(java: str) -> None:
    with pytest.raises(ValueError, match="Python"):
        expression(java)


def test_names_are_names_and_no_expressions() -> None:
    assert names("audit.log, payments,") == r"audit\.log|payments"
