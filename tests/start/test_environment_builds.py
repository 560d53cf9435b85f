"""bin/environment.py for a package without a wheel: its build's tools, downloads and leftovers, as the index sees
them."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.package_index import PackageIndex, entry, package_index, source, wheel

PATIENCE = 600.0
"""Timeout in seconds: a new environment waits until all its files are on the disk."""

CHECKOUT = Path(__file__).parents[2]
SCRIPT = CHECKOUT / "bin" / "environment.py"
BUILD_LOCK = CHECKOUT / "requirements-build.lock"
[(_, LOCKED_VERSION)] = re.findall(r"^(setuptools)==(\S+)", BUILD_LOCK.read_text(), re.MULTILINE)

SETUP = """
import os
import sys
import setuptools
with open("pyspark.py", "w") as file:
    print(f"BUILT_WITH = {setuptools.__version__!r}", file=file)
    print(f"BUILT_IN = {sorted(os.environ)!r}", file=file)
setuptools.setup(name="pyspark", version="0.1", py_modules=["pyspark"], setup_requires=["unpinned"])
"""
POISON = "raise SystemExit('nobody pinned this')\n"
POISONED = {"setuptools/__init__.py": POISON, "setuptools/build_meta.py": POISON}
PYSPARK = source("pyspark", "0.1", {"setup.py": SETUP})
SHOW = ("timeit", "-n1", "-r1", "import pyspark; print(pyspark.BUILT_WITH)")


@pytest.fixture(scope="module")
def setuptools_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The locked version."""
    directory = tmp_path_factory.mktemp("setuptools")
    fetch = ["download", "--quiet", "--no-deps", "--require-hashes", "--dest", str(directory), "-r", str(BUILD_LOCK)]
    subprocess.run([sys.executable, "-m", "pip", *fetch], check=True)
    [path] = directory.iterdir()
    return path


@pytest.fixture
def index(setuptools_wheel: Path) -> Iterator[PackageIndex]:
    """A package index with the locked setuptools, a newer one, and a package without a wheel."""
    with package_index() as made:
        made.files = {
            setuptools_wheel.name: setuptools_wheel.read_bytes(),
            "setuptools-999.0-py3-none-any.whl": wheel("setuptools", "999.0", POISONED),
            "wheel-999.0-py3-none-any.whl": wheel("wheel", "999.0", {"wheel/__init__.py": POISON}),
            "unpinned-1.0-py3-none-any.whl": wheel("unpinned", "1.0", {"unpinned.py": POISON}),
            "pyspark-0.1.tar.gz": PYSPARK,
            "tiny-1.0-py3-none-any.whl": wheel("tiny", "1.0", {"tiny.py": ""}),
        }
        yield made


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "some.lock"
    path.write_text(entry("pyspark", "0.1", PYSPARK))
    return path


def started(tmp_path: Path, index: PackageIndex, *arguments: object, **changed: str) -> subprocess.Popen[str]:
    machine = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    own = {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PIP_INDEX_URL": index.url,
    }
    return subprocess.Popen(
        [sys.executable, "-I", str(SCRIPT), *map(str, arguments)],
        env=machine | own | changed,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@pytest.mark.release
def test_a_build_uses_the_locked_setuptools_and_nothing_else_is_fetched(
    tmp_path: Path, index: PackageIndex, lock: Path, setuptools_wheel: Path
) -> None:
    code, out, err = finished(started(tmp_path, index, lock, *SHOW))

    assert (code, out.split("\n")[0]) == (0, LOCKED_VERSION), err
    assert set(index.asked) == {
        "/simple/setuptools/",
        f"/files/{setuptools_wheel.name}",
        "/simple/pyspark/",
        "/files/pyspark-0.1.tar.gz",
    }


@pytest.mark.release  # the locked build is tested in the image
def test_a_build_sees_nothing_of_the_user_that_could_change_it(tmp_path: Path, index: PackageIndex, lock: Path) -> None:
    kept = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1", "LC_TIME": "C"}
    spark = {f"PYSPARK_{name}": "other" for name in ("HADOOP_VERSION", "HIVE_VERSION", "RELEASE_MIRROR")}
    show = (*SHOW[:-1], "import pyspark; print(*pyspark.BUILT_IN)")
    code, out, err = finished(started(tmp_path, index, lock, *show, CFLAGS="-O9", MAKEFLAGS="-n", **spark, **kept))

    assert code == 0, err
    seen = set(out.split("\n")[0].split())
    assert kept.keys() <= seen
    assert not seen & {"CFLAGS", "MAKEFLAGS", *spark}


@pytest.mark.release
@pytest.mark.parametrize("in_a_file", [True, False])
def test_no_setting_of_pips_changes_what_is_installed_and_where(
    tmp_path: Path, index: PackageIndex, lock: Path, in_a_file: bool
) -> None:
    # All at once: if pip obeyed any of them, there would be nothing to import.
    there = {name: str(tmp_path / "t") for name in ("target", "prefix", "root")}
    settings = {**there, "user": "1", "dry-run": "1", "python": str(tmp_path / "none")}
    variables = {f"PIP_{name.upper().replace('-', '_')}": value for name, value in settings.items()}
    if in_a_file:
        python = settings.pop("python")
        installing = "".join(f"{name} = {value}\n" for name, value in settings.items())
        file = tmp_path / "pip.conf"
        file.write_text(f"[global]\nquiet = 3\nindex-url = {index.url}\npython = {python}\n[install]\n{installing}")
        variables = {"PIP_CONFIG_FILE": str(file), "PIP_INDEX_URL": ""}
    code, out, err = finished(started(tmp_path, index, lock, *SHOW, **variables))

    assert (code, out.split("\n")[0]) == (0, LOCKED_VERSION), err
    assert "/files/pyspark-0.1.tar.gz" in index.asked
    assert not (tmp_path / "t").exists()


def test_an_environment_that_lacks_what_pip_says_it_installed_is_not_complete(
    tmp_path: Path, index: PackageIndex
) -> None:
    overwritten = {
        "other-1.0.data/purelib/tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 2.0\n"
    }
    index.files["other-1.0-py3-none-any.whl"] = wheel("other", "1.0", overwritten)
    lock = tmp_path / "other.lock"
    elsewhere = entry("elsewhere", "1.0 ; sys_platform == 'other'", b"")
    both = [entry(name, "1.0", index.files[f"{name}-1.0-py3-none-any.whl"]) for name in ("tiny", "other")]
    lock.write_text("".join([*both, elsewhere]))
    for _ in range(2):
        code, out, err = finished(started(tmp_path, index, lock, *SHOW))

        assert (code, out) == (1, "")
        assert f"has not installed tiny==1.0 of {lock}" in err.splitlines()[-1]


@pytest.mark.release
def test_a_wheel_that_was_built_for_one_lock_is_used_by_all(tmp_path: Path, index: PackageIndex, lock: Path) -> None:
    tiny = index.files["tiny-1.0-py3-none-any.whl"]
    other = tmp_path / "other.lock"
    other.write_text(entry("pyspark", "0.1", PYSPARK) + entry("tiny", "1.0", tiny))
    assert finished(started(tmp_path, index, lock, *SHOW))[0] == 0
    index.asked.clear()
    code, out, err = finished(started(tmp_path, index, other, *SHOW))

    assert (code, out.split("\n")[0]) == (0, LOCKED_VERSION), err
    assert set(index.asked) == {"/simple/tiny/", "/files/tiny-1.0-py3-none-any.whl"}


@pytest.mark.release  # held by test_environment.py, for an installation
def test_a_build_that_was_killed_halfway_is_made_good_by_the_next_start(
    tmp_path: Path, index: PackageIndex, lock: Path
) -> None:
    killed = started(tmp_path, index, lock, *SHOW)
    assert killed.stderr
    assert any(line.startswith("building pyspark") for line in killed.stderr)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=PATIENCE)

    code, out, err = finished(started(tmp_path, index, lock, *SHOW))
    assert (code, out.split("\n")[0]) == (0, LOCKED_VERSION), err
    assert "removing the unfinished" in err


def test_a_source_that_does_not_match_the_locks_hash_is_not_built(tmp_path: Path, index: PackageIndex) -> None:
    lock = tmp_path / "other.lock"
    lock.write_text(entry("pyspark", "0.1", PYSPARK + b"changed"))
    code, out, err = finished(started(tmp_path, index, lock, *SHOW))

    assert (code, out) == (1, "")
    assert "DO NOT MATCH THE HASHES" in err
    assert "cannot build it" in err.splitlines()[-1]


def test_a_package_that_should_have_a_wheel_is_never_built(tmp_path: Path, index: PackageIndex) -> None:
    index.files["other-1.0.tar.gz"] = source("other", "1.0", {"setup.py": POISON})
    lock = tmp_path / "other.lock"
    lock.write_text(entry("other", "1.0", index.files["other-1.0.tar.gz"]))
    code, out, err = finished(started(tmp_path, index, lock, *SHOW))

    assert (code, out) == (1, "")
    assert f"cannot install {lock}" in err.splitlines()[-1]
    assert index.asked == ["/simple/other/"]
