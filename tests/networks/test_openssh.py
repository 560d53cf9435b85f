"""The tests of the tunnel, through OpenSSH's own sshd."""

import inspect
import logging
from collections.abc import Iterator

import pytest

from tests.real.tunnel import test_carrying, test_outage, test_ssh
from tests.support.openssh import sshd
from tests.support.ssh import MakeServer, inside_ssh
from tests.support.tunnel import SECRET, Ends, logged


@pytest.fixture
def ends() -> Ends:
    return inside_ssh(sshd)


@pytest.fixture
def ssh_server() -> MakeServer:
    return sshd


@pytest.fixture(autouse=True)
def no_secret_in_the_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    assert SECRET not in logged(caplog.get_records("call"))


for _module in (test_ssh, test_carrying, test_outage):
    for _name, _test in vars(_module).items():
        if _name.startswith("test_") and {"ends", "ssh_server"} & set(inspect.signature(_test).parameters):
            globals()[_name] = _test
