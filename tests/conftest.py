"""For all tests: a busy machine takes its time for an example, and that is no failure."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    stalls = "let the event loops of tests/real stand still at random, chosen by SEED"
    parser.addoption("--stalls", type=int, metavar="SEED", help=stalls)
