import pytest

from tests.console.requirements import missing


def pytest_configure() -> None:
    if lacking := missing():
        pytest.exit(lacking, returncode=1)
