"""The processes that tests start have no package that users do not have: what runs in them needs none."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["hypothesis", "pandas"])
def test_a_process_of_a_test_finds_no_package_that_only_tests_need(package: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {package}"], capture_output=True, text=True)
    assert "ImportError: not for the processes of tests" in done.stderr
