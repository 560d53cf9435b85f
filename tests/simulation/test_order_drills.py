"""The drills of docs/run/total-order.md, word for word, on simulated clusters with producers that run on."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.errors import ApplianceError
from tests.simulation.order_operator import Operator
from tests.simulation.order_scenario import Calm

PAGE = Path(__file__).parent.parent.parent / "docs" / "run" / "total-order.md"
OWN = "grape"
"""The cluster beside which the page's commands are entered."""

_TAKES_OVER = r"home\ is\ grape,\ epoch\ \d+\ of\ grape", r"home is (grape|lemon), epoch \d+ of \1"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a drill: commands to enter, and lines that they print, whatever the numbers are."""

    title: str
    commands: list[str]
    printed: list[str]


def steps(drill: str) -> Iterator[Step]:
    """The steps of a drill of the page."""
    drills = PAGE.read_text().partition("\n## Drills\n")[2].partition("\n## ")[0]
    text = drills.partition(f"\n### {drill}\n")[2].partition("\n### ")[0]
    for step in text.split("\n#### ")[1:]:
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", step, re.MULTILINE | re.DOTALL)
        commands = [line for kind, block in blocks if not kind for line in block.splitlines()]
        printed = [line for kind, block in blocks if kind == "text" for line in block.splitlines()]
        yield Step(step.partition("\n")[0], commands, printed)


def fits(shown: str, line: str) -> bool:
    """True if a line of the page is this one, but for its numbers, and for who takes over, as the page says."""
    pattern = re.sub(r"\d+", r"\\d+", re.escape(shown))
    return re.fullmatch(pattern.replace(*_TAKES_OVER), line) is not None


def produce(order: Calm) -> None:
    order.produce(20)


def lose_the_home(order: Calm) -> None:
    """All of orange's VM: its process, and the ways through it."""
    order.world.kill("orange")
    for other in order.world.names[1:]:
        order.world.cut(other, "orange")
    before = order.shown("lemon") if "lemon" in order.world.names else -1
    order.produce(10)
    order.go_on(15)
    order.produce(10)
    assert before < 0 or order.shown("lemon") > before


def bring_it_back(order: Calm) -> None:
    order.world.mend()
    order.world.start("orange")
    order.produce(20)
    order.settle()


DRILLS: dict[str, tuple[int, dict[str, Callable[[Calm], None]]]] = {
    "The home is lost, and comes back": (
        3,
        {"Look": produce, "The home is lost": lose_the_home, "It is back": bring_it_back},
    ),
    "The home moves": (3, {"Move": produce, "Move back": produce}),
    "Of two clusters, the home is lost": (
        2,
        {"The home is lost": lose_the_home, "Give the word": produce, "It is back": bring_it_back},
    ),
}
"""The drills of the page with their number of clusters, and what is done before the commands of each step."""


@pytest.mark.parametrize("drill", DRILLS)
def test_the_drills_are_carried_out_word_for_word(
    drill: str, calm: Callable[[int], Calm], capsys: pytest.CaptureFixture[str]
) -> None:
    clusters, doing = DRILLS[drill]
    order = calm(clusters)
    order.start()
    produce(order)
    order.settle()
    page = list(steps(drill))
    assert [step.title for step in page] == [*doing]
    for step in page:
        doing[step.title](order)
        capsys.readouterr()
        lines = [line for command in step.commands for line in entered(order, command, capsys)]
        for shown in step.printed:
            assert any(fits(shown, line) for line in lines), f"{step.title} does not print: {shown}\n{lines}"
    produce(order)
    order.settle()


def entered(order: Calm, command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Enter a command of the page; the lines that it prints, and the reason if it is refused."""
    program, *words = command.partition("#")[0].split()
    assert program == "bin/appliance"
    try:
        code = Operator(order.world, OWN, order.go_on).run(*words)
        assert code == 0 or words == ["order", "status"], command  # which tells of the lost one with 1
        refused = ""
    except ApplianceError as error:
        refused = f"appliance: {error}"
    return [*capsys.readouterr().out.splitlines(), *refused.splitlines()]
