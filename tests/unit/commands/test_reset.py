import re
import shlex
from typing import Any

import pytest

from appliance import command_line
from appliance.commands.model.position_change import Place
from appliance.commands.reset import _Run
from appliance.commands.run.operation import Choice
from appliance.errors import LinkRefused
from appliance.link.model.copy_states import CopyState, StateRecord
from appliance.program import PROGRAM


def test_case_917_the_command_that_ends_another_reset_takes_its_topic_alone_and_can_be_typed() -> None:
    # `appliance reset --topic orders.eu --to 2026-11-25 08:00:00`: another topic's too, and two words too many.
    details = {"to": "2026-11-25 08:00:00", "partition": 3}
    record = StateRecord("orders.eu", CopyState.RESETTING, 1, "me@host", details=details)
    operation: Any = type("Running", (), {"choice": Choice("orders.eu")})
    with pytest.raises(LinkRefused) as refused:
        _Run(operation, Place.parse("--to", "latest"), None)._require_same(record)
    (command,) = re.findall("`(.*)`", str(refused.value))
    words = shlex.split(command.removeprefix(f"{PROGRAM} "))
    parsed = command_line.parser(words[0], command_line.command(words[0])).parse_args(words)
    assert (parsed.to, parsed.partition) == ("2026-11-25 08:00:00", 3)
    assert Choice(parsed.topic).takes("orders.eu")
    assert not Choice(parsed.topic).takes("orders-eu")
