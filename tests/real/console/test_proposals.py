"""A command of the page runs once its own dry run has been seen, by who has seen it, and not by another's request."""

import asyncio
import contextlib
import html
import re
import shlex
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest

from appliance.console.watch import LinkWatch
from tests.support.console import of_size, shown

TOKEN = "Vq3t0cJ9mW5xkR7fLs2hYbNd8pEuZa4G"
OWN = "/links/orange-grape/"
RECORDS = "import sys; open('seen', 'a').write(' '.join([sys.argv[1], *sys.argv[4:]]) + '\\n')\n"
Program = Callable[[str], object]


class Operator:
    """A session of the page."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session = session
        self._url = f"http://{address}{OWN}"

    async def sends(self, path: str, form: dict[str, str], **headers: str) -> int:
        async with self._session.post(
            f"{self._url}{path}", data=form, headers=headers, allow_redirects=False
        ) as answer:
            return answer.status

    async def page(self) -> str:
        """The page of commands, once none runs."""
        while True:
            async with self._session.get(f"{self._url}actions") as answer:
                text = await answer.text()
            if "under way" not in text:
                return text
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def operators(stopped: int = 0) -> AsyncIterator[tuple[Operator, Operator]]:
    """Two sessions of operators at one page."""
    taken = of_size({"orders": 3}, now=time.time_ns() // 1_000_000, stopped=stopped)
    async with shown(taken, CONSOLE_TOKEN=TOKEN) as address, contextlib.AsyncExitStack() as stack:
        made = []
        for _ in range(2):
            jar = aiohttp.CookieJar(unsafe=True)
            made.append(Operator(await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=jar)), address))
            assert await made[-1].sends("session", {"token": TOKEN}) == 303
        yield made[0], made[1]


def proposed(page: str) -> str:
    """The command that the page asks about; empty for none."""
    found = re.search(r'actions/confirmed".*?name="command" value="([^"]*)"', page, re.DOTALL)
    return found[1] if found else ""


def run(folder: Path) -> list[str]:
    file = folder / "seen"
    return file.read_text().splitlines() if file.exists() else []


async def test_a_command_runs_after_its_dry_run_and_once(program: Program, tmp_path: Path) -> None:
    program(RECORDS)
    async with operators() as (own, _):
        await own.sends("actions/pause", {"topic": "orders", "why": "work"})
        page = await own.page()
        assert "Pause now" in page
        assert run(tmp_path) == ["pause --dry-run --topic=orders --why=work"]
        for _ in range(2):
            await own.sends("actions/confirmed", {"command": proposed(page)})
            page_after = await own.page()
        assert "nothing has been done: its dry run comes first" in page_after
    assert run(tmp_path)[1:] == ["pause --yes --topic=orders --why=work"]


async def test_a_remedy_of_a_present_problem_runs_after_its_dry_run(program: Program, tmp_path: Path) -> None:
    program(RECORDS)
    async with operators(stopped=1) as (own, _):
        assert "1 of 3 partitions stopped" in await main(own)
        text = "bin/appliance resume --topic-name=orders --partition 0"
        assert f'name="command" value="{text}"' in await own.page()
        await own.sends("actions/remedy", {"command": text})
        await own.sends("actions/confirmed", {"command": proposed(await own.page())})
        await own.page()
    asked = "resume --dry-run --topic-name=orders --partition 0"
    assert run(tmp_path) == [asked, asked.replace(" --dry-run", "")]


async def test_case_1471_a_remedy_is_not_carried_out_once_its_problem_is_over_or_nobody_knows(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It moved a partition back that somebody had resumed meanwhile: its records were copied twice.
    program(RECORDS)
    text = "bin/appliance resume --topic-name=orders --partition 0"
    well = of_size({"orders": 3}, now=time.time_ns() // 1_000_000)
    for name, now in (("snapshot", well), ("fresh", False)):
        async with operators(stopped=1) as (own, _):
            await own.sends("actions/remedy", {"command": text})
            command = proposed(await own.page())
            assert command
            with monkeypatch.context() as meanwhile:
                meanwhile.setattr(LinkWatch, name, property(lambda _, now=now: now), raising=False)
                await own.sends("actions/confirmed", {"command": command})
                assert "there is no such problem any more" in await own.page()
    assert run(tmp_path) == ["resume --dry-run --topic-name=orders --partition 0"] * 2


async def test_case_1472_the_command_that_is_asked_about_is_one_that_a_shell_takes_as_it_is(
    program: Program, tmp_path: Path
) -> None:
    # The Copy button copied `--topic=orders|payments`, which a shell runs as two commands.
    program(RECORDS)
    async with operators() as (own, _):
        await own.sends("actions/pause", {"topic": "orders|payments", "why": "too slow"})
        command = html.unescape(proposed(await own.page()))
        assert shlex.split(command) == ["pause", "--yes", "--topic=orders|payments", "--why=too slow"]
        await own.sends("actions/confirmed", {"command": command})
        await own.page()
    assert run(tmp_path)[1:] == ["pause --yes --topic=orders|payments --why=too slow"]


async def main(own: Operator) -> str:
    async with own._session.get(own._url) as answer:
        return await answer.text()


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("confirmed", {}),
        ("confirmed", {"command": "pause --yes"}),
        ("remedy", {}),
        ("remedy", {"command": "bin/appliance failover"}),
        ("remedy", {"command": "bin/appliance resume --topic-name=orders --partition 0 --from OFFSET"}),
    ],
)
async def test_nothing_runs_that_no_dry_run_or_no_present_problem_names(
    path: str, form: dict[str, str], program: Program, tmp_path: Path
) -> None:
    program(RECORDS)
    async with operators(stopped=1) as (own, _):
        assert await own.sends(f"actions/{path}", form) == 303
        assert 'role="alert"' in await own.page()
    assert run(tmp_path) == []


async def test_nobody_else_carries_out_what_one_has_seen(program: Program, tmp_path: Path) -> None:
    program(RECORDS)
    async with operators() as (own, other):
        await own.sends("actions/reset", {"topic": "orders", "to": "latest"})
        command = {"command": proposed(await own.page())}
        assert proposed(await other.page()) == ""
        confirmed = command | {"confirm": "orange-grape"}
        await other.sends("actions/confirmed", confirmed)
        assert await own.sends("actions/confirmed", confirmed, Origin="http://evil.example") == 403
        assert await own.sends("session/end", {}) == 303
        assert await own.sends("actions/confirmed", confirmed) == 403
    assert [line.split()[1] for line in run(tmp_path)] == ["--dry-run"]


async def test_a_reset_also_needs_the_links_name_and_a_failed_dry_run_asks_for_nothing(
    program: Program, tmp_path: Path
) -> None:
    program(RECORDS)
    async with operators() as (own, _):
        for typed, times in (("orange", 1), ("orange-grape", 3)):
            await own.sends("actions/reset", {"topic": "orders", "to": "latest"})
            await own.sends("actions/confirmed", {"command": proposed(await own.page()), "confirm": typed})
            await own.page()
            assert len(run(tmp_path)) == times
        program(f"{RECORDS}sys.exit(1)")
        await own.sends("actions/promote", {})
        assert proposed(await own.page()) == ""
