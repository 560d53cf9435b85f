import pytest

from appliance.migrate.model.expressions import NOTHING, alternation, expression, names


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
