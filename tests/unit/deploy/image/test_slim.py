"""What the image has no use for is removed, and a pattern that no longer matches is told."""

from pathlib import Path

import pytest

from deploy.image.slim import JARS, KEPT, PYTHON, slim

OF_A_PATTERN = {"**/": "somewhere/", "[!s]": "x", "[!_]": "x", "*": "1"}


def named(pattern: str) -> str:
    """A file that a pattern matches."""
    for sign, text in OF_A_PATTERN.items():
        pattern = pattern.replace(sign, text)
    return pattern


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder in which every pattern matches, beside files that stay."""
    names = [named(pattern) for pattern in " ".join(PYTHON.values()).split()]
    names += [f"pyspark/jars/{named(pattern)}" for pattern in " ".join(JARS.values()).split()]
    names += [f"{folder}/{named(pattern)}" for folder, patterns in KEPT.items() for pattern in (*patterns, "other")]
    for name in (*names, "pyspark/jars/spark-core_2.jar", "pyspark/jars/hive-storage-api-2.jar", "pyspark/sql/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_only_what_is_used_stays(site: Path) -> None:
    slim(site)
    stays = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}
    of_aws = {f"botocore/data/{name}" for name in ("1.json", "sts", "sso", "sso-oidc", "signin")}
    spark = {"pyspark/jars/spark-core_2.jar", "pyspark/jars/hive-storage-api-2.jar", "pyspark/sql/a.py"}
    assert stays == of_aws | spark


@pytest.mark.parametrize("gone", ["pyspark/jars/scala-compiler-1", "numpy/f2py"])
def test_a_pattern_that_matches_nothing_fails_the_build(site: Path, gone: str) -> None:
    (site / gone).unlink()
    with pytest.raises(FileNotFoundError, match="nothing matches"):
        slim(site)
