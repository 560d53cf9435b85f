import pytest
from kio.schema.errors import ErrorCode

from appliance.errors import BrokerBusy, BrokerRefused, Fenced
from appliance.kafka.protocol.answer import Answers, check


def test_none_is_no_error() -> None:
    check(ErrorCode.none, "anything")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.invalid_producer_epoch, Fenced),
        (ErrorCode.producer_fenced, Fenced),
        (ErrorCode.not_leader_or_follower, BrokerBusy),
        (ErrorCode.concurrent_transactions, BrokerBusy),
        (ErrorCode.topic_authorization_failed, BrokerRefused),
        (ErrorCode.message_too_large, BrokerRefused),
    ],
)
def test_a_code_becomes_the_error_that_says_what_to_do(code: ErrorCode, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"produce to x-1: {code.name.upper()}") as caught:
        check(code, "produce to x-1")
    assert type(caught.value) is error


def test_of_the_answers_about_one_subject_the_first_error_counts() -> None:
    answers = Answers[str, int]({}, {})
    answers.take("a", 1, ErrorCode.none, "read a")
    answers.take("b", -1, ErrorCode.not_leader_or_follower, "read b", "moved")
    answers.take("b", -1, ErrorCode.message_too_large, "read b")
    assert answers.values == {"a": 1}
    assert {key: str(error) for key, error in answers.failures.items()} == {
        "b": "read b (moved): NOT_LEADER_OR_FOLLOWER"
    }
