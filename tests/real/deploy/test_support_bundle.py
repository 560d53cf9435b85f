"""The bundle for those who help, made by the command itself; here nothing runs of what it asks."""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from appliance.settings.variables import ORDER_TABLE, TABLE
from bench.lib.running import environment
from deploy.support.program import BYTES_MAX
from testbed.process import OwnedProcess
from tests.support.authority import page_files
from tests.support.bundles import contents
from tests.support.patience import PATIENCE
from tests.support.processes import family, runs
from tests.support.recovering import encoded, recovered
from tests.support.settings import REQUIRED, write_settings

LONG = 3 * PATIENCE
SECRETS = {
    each.name: f"sEcReT{number}+/=&'\"<ü {each.name[::-1]}"
    for number, each in enumerate((*TABLE, *ORDER_TABLE))
    if each.confidential
}
"""A marker for each variable that is declared as a secret."""

PARTS = {"README.txt", "doctor.json", "versions.txt"}


def bundles(directory: Path) -> list[Path]:
    """The files of bundles, finished or not."""
    return list(directory.glob("*support*"))


async def start(directory: Path, *options: str, **variables: str) -> OwnedProcess:
    """The command in a link's folder."""
    command = [sys.executable, "-m", "appliance.cli", "support-bundle", *options]
    changed = {**environment(os.environ, directory), **variables}
    said = directory / f"said-{time.monotonic_ns()}.txt"
    return await OwnedProcess.start("bundle", ["env", "-C", str(directory), *command], said, changed)


async def bundle(directory: Path, *options: str, **variables: str) -> tuple[Mapping[str, bytes], str]:
    """The files of a bundle by their names, and what the command has said."""
    process = await start(directory, *options, **variables)
    assert await process.wait(LONG) == 0, process.failure("failed")
    (file,) = bundles(directory)
    return contents(file), process.log_file.read_text()


def secret_settings(directory: Path) -> list[str]:
    """Write settings full of secrets, valid or not; the secrets."""
    keys = page_files(directory / "keys")
    token = directory / "token.txt"
    token.write_text("sEcReT-of-a-file+/=\n")
    odd = {
        "AUDIT_PATH": "s3a://key:sEcReT-of-a-login@bucket/audit",
        "SOURCE_OAUTH_TOKEN_COMMAND": "/bin/get --key=sEcReT-of-a-command",
        "SHARED_SECERT": "sEcReT-of-a-misspelt-name",
    }
    files = {"CONSOLE_TOKEN_FILE": str(token)}
    own = {name: value for name, value in SECRETS.items() if name != "CONSOLE_TOKEN"}
    write_settings(directory / "setenv.sh", {**REQUIRED, **own, **odd, **files, **keys})
    lines = Path(keys["CONSOLE_TLS_KEY_FILE"]).read_text().splitlines()
    hidden = ["sEcReT-of-a-login", "sEcReT-of-a-command", "sEcReT-of-a-misspelt-name", "sEcReT-of-a-file+/="]
    return [*own.values(), *hidden, *(line for line in lines if len(line) > 20 and not line.startswith("-"))]


def log_with(directory: Path, secrets: Sequence[str]) -> Path:
    """A log with each secret in each form."""
    log = directory / "appliance.log"
    log.write_text("".join(f"failed with {form} there\n" for each in secrets for form in encoded(each)))
    return log


async def test_no_secret_of_the_settings_is_in_it_in_any_form_wherever_it_stood(tmp_path: Path) -> None:
    secrets = secret_settings(tmp_path)
    log = log_with(tmp_path, secrets)
    files, said = await bundle(tmp_path, "--logs", str(log), AWS_SECRET_ACCESS_KEY="sEcReT-of-the-environment")
    assert recovered(log.read_bytes(), secrets) == secrets
    assert len(files["log-1.txt"].splitlines()) == len(log.read_text().splitlines())
    for content in (*files.values(), said.encode()):
        assert recovered(content, [*secrets, "sEcReT-of-the-environment"]) == []
    assert "SHARED_SECRET='****'  # setenv.sh" in files["settings.txt"].decode()
    assert "SOURCE_CLUSTER_ID='orange'  # setenv.sh" in files["settings.txt"].decode()


async def test_it_is_there_while_everything_is_down_and_names_what_could_not_be_had(tmp_path: Path) -> None:
    pages = {"CONSOLE_LISTEN": "127.0.0.1:9", "TUNNEL_STATUS_LISTEN": "[::1]:9"}
    write_settings(tmp_path / "setenv.sh", REQUIRED | pages)
    files, said = await bundle(tmp_path)
    assert files.keys() >= PARTS
    index = files["README.txt"].decode()
    for missing in ("log-1.txt", "replicator-metrics.txt", "tunnel-status.txt"):
        assert missing not in files
        assert f"{missing}: not there (" in index
    assert "log-1.txt: not there (give one with --logs FILE)" in index
    assert all(line in said for line in index.splitlines())
    assert said.splitlines()[-1].startswith(f"The bundle is {tmp_path}/support-")


async def test_of_a_long_log_the_whole_lines_at_its_end_are_taken_and_one_that_is_not_there_is_named(
    tmp_path: Path,
) -> None:
    line = b"0123456789" * 100_000 + b"\n"
    with (tmp_path / "long.log").open("wb") as log:
        log.writelines([b"the first line\n", *[line] * (BYTES_MAX // len(line) + 2), b"the last line\n"])
    files, _ = await bundle(tmp_path, "--logs", "long.log", "--logs", "none.log")
    first, *lines, last = files["log-1.txt"].splitlines()
    assert first == b"(the lines before this one are left out)"
    assert {each + b"\n" for each in lines} == {line}
    assert last == b"the last line"
    index = files["README.txt"].decode()
    assert re.search(r"^log-2.txt: not there \(ended with 1: .*none.log.*: No such file or directory\)$", index, re.M)
    assert "setenv.sh: no such file" in index


async def test_a_stop_before_the_end_leaves_neither_a_file_nor_a_program_behind(tmp_path: Path) -> None:
    write_settings(tmp_path / "setenv.sh", REQUIRED)
    os.mkfifo(tmp_path / "log")  # nobody writes to it, so it is waited for
    process = await start(tmp_path, "--logs", "log")
    async with asyncio.timeout(PATIENCE):
        while not any(runs(each, "tail") for each in family(process.pid)):
            await asyncio.sleep(0.1)
    started = family(process.pid)
    os.kill(process.pid, signal.SIGINT)
    assert await process.wait(LONG) == 130
    assert [each for each in started if each.is_running() and each.status() != psutil.STATUS_ZOMBIE] == []
    assert "stopped before the end: there is no bundle" in process.log_file.read_text()
    assert bundles(tmp_path) == []


async def test_a_folder_that_cannot_be_written_to_is_named_before_anything_is_gathered(tmp_path: Path) -> None:
    process = await start(tmp_path, "--output", "none")
    assert await process.wait(LONG) == 1
    assert "none: expected a folder that this user may write to: see --output" in process.log_file.read_text()


async def test_two_at_once_are_two_bundles_and_stdout_gets_one_and_nothing_else(tmp_path: Path) -> None:
    write_settings(tmp_path / "setenv.sh", REQUIRED)
    outputs = [], [], ["--output", "-"]
    processes = [await start(tmp_path, *options) for options in outputs]
    assert [await process.wait(LONG) for process in processes] == [0, 0, 0]
    assert len(bundles(tmp_path)) == 2
    assert contents(processes[-1].log_file).keys() >= PARTS
