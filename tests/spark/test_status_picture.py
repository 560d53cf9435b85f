"""``status`` of a running link at a terminal of 80 columns, as it is in the documentation.

``PICTURES=docs/pictures bin/test --release tests/spark/test_status_picture.py`` takes the picture anew.
"""

import asyncio
import os
import random
import re
import shlex
from pathlib import Path

import pytest
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from bench.lib.running import free_port
from tests.support.administration import configure
from tests.support.link import Link
from tests.support.patience import PATIENCE
from tests.support.terminal import said_at_terminal

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]  # held by tests/unit/test_tables.py

COLUMNS = 80


def picture(text: str) -> str:
    """The text as an SVG, whose letters are those of the reader's own machine."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(Text.from_ansi(text))
    drawn = console.export_svg(title="bin/appliance status", theme=MONOKAI, unique_id="status")
    return re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL).replace("Fira Code, ", "")


async def test_status_of_a_running_link_fits_80_columns(shared: Link, tmp_path: Path) -> None:
    shared.clear()
    pages = {"CONSOLE_LISTEN": f"127.0.0.1:{free_port('127.0.0.1')}", "CONFIGS_SYNC": "no"}
    for name, partitions in (("orders.europe", 6), ("orders.america", 4), ("orders.returns", 2)):
        await asyncio.to_thread(shared.make_topic, shared.orange, name, partitions)
        for number in range(partitions):
            await asyncio.to_thread(shared.produce, name, 3000 + 70 * number, number)
    env_file = tmp_path / "setenv.sh"
    settings = shared.variables() | pages
    env_file.write_text("".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items()))
    env_file.chmod(0o600)

    def status() -> tuple[str, list[str]]:
        text = said_at_terminal(COLUMNS, "-m", "appliance.cli", "status", "--env-file", str(env_file))
        return text, re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()

    async with shared.tunnel(), shared.running("replicate", **pages) as replicator:
        await replicator.wait_for_line("topics to copy", PATIENCE)
        async with asyncio.timeout(4 * PATIENCE):
            while not (await asyncio.to_thread(status))[1][0].startswith("replicator-orange: copied"):
                pass
        configure(shared.grape, "orders.returns.copy", **{"max.message.bytes": "1000"})
        noise = random.Random(1).randbytes(3000)
        await asyncio.to_thread(shared.produce, "orders.returns", 1, 1, noise)
        async with asyncio.timeout(4 * PATIENCE):
            while not (lines := (await asyncio.to_thread(status))[1])[0].startswith("replicator-orange: stopped"):
                pass
        text, lines = await asyncio.to_thread(status)
    assert max(map(len, lines)) <= COLUMNS
    topics = [line.split()[0] for line in lines if line.startswith("orders.") and "-" not in line.split()[0]]
    assert topics[0] == "orders.returns"
    assert any(line.startswith("12 partitions: 11 copied, 1 stopped; lag") for line in lines)
    file = Path(os.environ.get("PICTURES", str(tmp_path)), "status.svg")
    await asyncio.to_thread(file.write_text, picture(text))
