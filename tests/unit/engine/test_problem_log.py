"""A problem is reported when it begins or changes, and when it is over."""

from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError
from appliance.link.model.problems import Fault


class Recorder:
    """A receiver that keeps the reports."""

    def __init__(self) -> None:
        self.notices: list[tuple[str, str]] = []

    def __call__(self, subject: str, error: ApplianceError | None) -> None:
        self.notices.append((subject, str(error or "over")))


def test_a_problem_is_told_once_until_it_changes() -> None:
    recorder = Recorder()
    problems = ProblemLog(recorder)
    for fault in ("no leader", "no leader", "no answer"):
        problems.tell("a-0", ApplianceError(fault))
    assert recorder.notices == [("a-0", "no leader"), ("a-0", "no answer")]


def test_only_a_problem_that_was_told_is_over_and_then_it_may_begin_again() -> None:
    recorder = Recorder()
    problems = ProblemLog(recorder)
    problems.over("a-0")
    for _ in range(2):
        problems.tell("a-0", ApplianceError("no leader"))
        problems.over("a-0")
    assert recorder.notices == [("a-0", "no leader"), ("a-0", "over")] * 2


def test_a_forgotten_problem_is_not_over_and_is_told_anew() -> None:
    recorder = Recorder()
    problems = ProblemLog(recorder)
    problems.tell("a-0", ApplianceError("no leader"))
    problems.forget("a-0")
    problems.over("a-0")
    problems.tell("a-0", ApplianceError("no leader"))
    assert recorder.notices == [("a-0", "no leader")] * 2


def test_a_problem_that_comes_back_soon_is_the_same_one_and_one_that_comes_back_late_is_new() -> None:
    now = 0
    problems = ProblemLog(Recorder(), clock=lambda: now)
    for now, end in ((1_000, problems.over), (100_000, problems.forget), (200_000, problems.over)):
        problems.tell("lane 0", ApplianceError(f"failed at {now}"))
        assert problems.open == {"lane 0": Fault(f"failed at {now}", 1_000)}
        end("lane 0")
    now = 400_000
    problems.tell("lane 0", ApplianceError("failed"))
    assert problems.open["lane 0"].since == 400_000


def test_of_the_subjects_with_a_prefix_those_that_are_not_named_are_over() -> None:
    recorder = Recorder()
    problems = ProblemLog(recorder)
    for subject in ("topic a", "topic b", "spark"):
        problems.tell(subject, ApplianceError("wrong"))
    recorder.notices.clear()
    problems.keep("topic ", {"topic b": ApplianceError("wrong"), "topic c": ApplianceError("wrong")})
    assert recorder.notices == [("topic a", "over"), ("topic c", "wrong")]
