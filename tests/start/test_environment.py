"""bin/environment.py as a process: environments made, shared and repaired; machines that lack a tool refused."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

PATIENCE = 600.0
"""Timeout in seconds: a new environment waits until all its files are on the disk."""

CHECKOUT = Path(__file__).parents[2]
SCRIPT = CHECKOUT / "bin" / "environment.py"


def tiny_lock(directory: Path) -> Path:
    """A lock of one small package, a part of the appliance's lock."""
    block = re.search(r"^h11==.*\n(    --hash.*\n)+", (CHECKOUT / "requirements.lock").read_text(), re.MULTILINE)
    assert block
    path = directory / "tiny.lock"
    path.write_text(block.group())
    return path


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tiny_lock(tmp_path)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose cache has the lock's environment, for tests of programs that start in it."""
    directory = tmp_path_factory.mktemp("ready")
    assert finished(started(directory, tiny_lock(directory), "pip", "freeze"))[0] == 0
    return directory


WATCHED = """
import runpy, sys

def opened(event, arguments):
    if event == "open" and str(arguments[0]).endswith("/complete"):
        print("complete", file=sys.stderr)

def called(frame, event, function):
    if event == "c_call" and function.__name__ == "sync":
        print("sync", file=sys.stderr)

sys.addaudithook(opened)
sys.setprofile(called)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a script, and prints when the script calls sync, and when it opens a file named complete."""


def started(
    tmp_path: Path,
    *arguments: object,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    script: Sequence[str] = (str(SCRIPT),),
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", *script, *map(str, arguments)],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), **(environment or {})},
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def environments(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "cache" / "kafka-cloud-replicator").iterdir() if path.is_dir()]


def java_stub(directory: Path, answer: str) -> Path:
    directory.mkdir(parents=True)
    java = directory / "java"
    java.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    java.chmod(0o755)
    return directory


def test_two_first_starts_at_once_share_one_environment_that_is_on_the_disk_before_it_is_called_complete(
    tmp_path: Path, lock: Path
) -> None:
    both = [started(tmp_path, lock, "pip", "freeze", script=("-c", WATCHED, str(SCRIPT))) for _ in range(2)]
    outcomes = [finished(process) for process in both]

    assert [(code, out) for code, out, _ in outcomes] == [(0, lock.read_text().split()[0] + "\n")] * 2
    (made,) = (err.splitlines() for _, _, err in outcomes if "making a Python environment" in err)
    assert [line for line in made if line in ("sync", "complete")] == ["sync", "complete"]
    assert len(environments(tmp_path)) == 1


def test_a_start_that_was_killed_halfway_is_made_good_by_the_next_and_then_kept(tmp_path: Path, lock: Path) -> None:
    killed = started(tmp_path, lock, "pip", "freeze")
    assert killed.stderr
    assert any(line.startswith("installing") for line in killed.stderr)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=PATIENCE)
    [half_made] = environments(tmp_path)
    assert not (half_made / "complete").exists()

    code, out, err = finished(started(tmp_path, lock, "pip", "freeze"))
    assert (code, out.startswith("h11==")) == (0, True)
    assert "removing the unfinished" in err
    assert finished(started(tmp_path, lock, "pip", "freeze")) == (0, out, "")
    assert environments(tmp_path) == [half_made]


def test_the_module_gets_its_arguments_the_checkout_and_nothing_of_the_callers_python_path(
    ready: Path, lock: Path
) -> None:
    show = "import os, h11, appliance; print(os.environ['PYTHONPATH'], os.path.dirname(appliance.__file__))"
    timeit = ("timeit", "-n1", "-r1", show)
    code, out, _ = finished(started(ready, lock, *timeit, environment={"PYTHONPATH": "/nowhere"}))

    assert code == 0
    assert out.startswith(f"{CHECKOUT} {CHECKOUT / 'appliance'}\n")


def test_neither_the_module_nor_a_python_below_it_imports_from_the_current_directory(
    ready: Path, tmp_path: Path, lock: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "appliance.py").touch()
    # The module ``site`` prints Python's search path; ``timeit`` adds the current directory by itself.
    below = "import subprocess, sys; subprocess.run([sys.executable, '-m', 'site'], check=True)"
    for module in (("site",), ("timeit", "-n1", "-r1", below)):
        code, out, err = finished(started(ready, lock, *module, directory=elsewhere))

        assert (code, str(CHECKOUT) in out) == (0, True), err
        assert str(elsewhere) not in out


@pytest.mark.parametrize("all_environments", [True, False])
def test_an_environment_of_another_user_is_refused(
    ready: Path, tmp_path: Path, lock: Path, all_environments: bool
) -> None:
    shutil.copytree(ready / "cache", tmp_path / "cache", symlinks=True)
    [theirs] = environments(tmp_path)
    theirs = theirs.parent if all_environments else theirs
    if os.geteuid() == 0:
        os.chown(theirs, 65534, -1)
    else:  # Only root can change a directory's owner, so one of root's directories stands for it.
        shutil.rmtree(theirs)
        theirs.symlink_to("/usr")
    code, out, err = finished(started(tmp_path, lock, "pip", "freeze"))

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"{theirs} belongs to another user: ")
    assert "XDG_CACHE_HOME" in err


def test_a_download_that_does_not_match_the_locks_hash_is_refused(tmp_path: Path, lock: Path) -> None:
    lock.write_text(re.sub(r"sha256:[0-9a-f]{8}", "sha256:00000000", lock.read_text()))
    code, out, err = finished(started(tmp_path, lock, "pip", "freeze"))

    assert (code, out) == (1, "")
    assert f"cannot install {lock}" in err.splitlines()[-1]
    assert [path for path in environments(tmp_path) if (path / "complete").exists()] == []


def test_a_cache_directory_that_cannot_be_made_gives_one_line_that_names_the_variable(
    tmp_path: Path, lock: Path
) -> None:
    (tmp_path / "cache").write_text("a file where a directory is wanted")
    code, _, err = finished(started(tmp_path, lock, "pip", "freeze"))

    assert code == 2
    assert err.count("\n") == 1
    assert "XDG_CACHE_HOME" in err


def test_a_missing_lock_gives_one_line_that_names_it(tmp_path: Path) -> None:
    code, _, err = finished(started(tmp_path, tmp_path / "no.lock", "pip", "freeze"))

    assert code == 2
    assert err.startswith(f"{tmp_path / 'no.lock'}: No such file or directory")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("tool", "command"),
    [
        ("apt-get", "apt-get install default-jre-headless"),
        ("dnf", "dnf install java-latest-openjdk-headless"),
        ("brew", "brew install --cask temurin"),
    ],
)
def test_a_missing_java_gives_one_line_with_the_command_of_the_systems_package_tool(
    tmp_path: Path, lock: Path, tool: str, command: str
) -> None:
    path = tmp_path / "path"
    path.mkdir()
    (path / tool).symlink_to("/bin/sh")
    machine = {"PATH": str(path), "JAVA_HOME": ""}
    code, out, err = finished(started(tmp_path, "--java", lock, "pip", "freeze", environment=machine))

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("Java 17 or newer is needed, there is no working java: install it with: ")
    assert err.endswith(f"{command}\n")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(("version", "major"), [("11.0.24", "11"), ("1.8.0_412", "8")])
def test_a_java_home_that_is_too_old_is_refused_though_path_has_a_better_one(
    tmp_path: Path, lock: Path, version: str, major: str
) -> None:
    old = java_stub(tmp_path / "old" / "bin", f'openjdk version "{version}" 2024-07-16')
    new = java_stub(tmp_path / "new", 'openjdk version "21.0.4" 2024-07-16')
    machine = {"PATH": f"{new}:{os.environ['PATH']}", "JAVA_HOME": str(old.parent)}
    code, _, err = finished(started(tmp_path, "--java", lock, "pip", "freeze", environment=machine))

    assert (code, err.count("\n")) == (2, 1)
    assert f"{old / 'java'} is {major}: " in err
    assert "JAVA_HOME" in err


def test_a_java_that_is_new_enough_is_accepted(ready: Path, lock: Path) -> None:
    code, out, _ = finished(started(ready, "--java", lock, "pip", "freeze"))

    assert (code, out.startswith("h11==")) == (0, True)


def test_without_a_module_it_says_how_it_is_called(tmp_path: Path, lock: Path) -> None:
    code, _, err = finished(started(tmp_path, lock))

    assert (code, err.startswith("usage: environment.py")) == (2, True)
