"""The ready lines of both gateways, and a log without a secret."""

import logging

import pytest

from tests.support.both_gateways import Ready
from tests.support.settings import SECRET
from tests.support.tunnel import logged


@pytest.fixture(autouse=True)
def no_secret_in_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    yield
    assert SECRET not in logged(caplog.get_records("call"))


@pytest.fixture
async def ready():
    handler = Ready()
    logging.getLogger("appliance.gateway").addHandler(handler)
    yield handler.lines
    logging.getLogger("appliance.gateway").removeHandler(handler)
