"""Ctrl-C and SIGTERM end each command that only looks, or that asks, whatever it waits for."""

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from appliance import cli
from tests.support.settings import DIRECT

PACKAGE = Path(cli.__file__).parent


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "words",
    [
        ["configs"],
        ["acls"],
        ["offsets", "translate", "--group", "billing"],
        ["resume"],
        ["status"],
        ["status", "--json"],
        ["verify"],
        ["pause"],
    ],
    ids=" ".join,
)
def test_case_1433_a_signal_ends_a_command_that_waits_for_a_silent_broker(
    words: list[str], number: signal.Signals
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as source, socket.create_server(("127.0.0.1", 0)) as destination:
        brokers = [f"127.0.0.1:{silent.getsockname()[1]}" for silent in (source, destination)]
        settings = DIRECT | dict(zip(("SOURCE_BROKER_SERVERS", "DESTINATION_BROKER_SERVERS"), brokers, strict=True))
        line = [sys.executable, "-m", "appliance.cli", *words]
        process = subprocess.Popen(
            line, cwd=PACKAGE.parent, env=os.environ | settings, stderr=subprocess.PIPE, text=True
        )
        asked, _, _ = select.select([source, destination], [], [], 120)
        connection, _ = asked[0].accept()
        with connection:
            assert connection.recv(1)
            process.send_signal(number)
            _, said = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert "stopped" in said
    assert "Traceback" not in said
