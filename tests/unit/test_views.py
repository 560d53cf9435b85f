"""What all commands that print a result have in common."""

import json
import subprocess
import sys
from pathlib import Path

from appliance.commands.model.report import Report
from appliance.link.model.copy_states import CopyState, StateRecord

NO_RESULT = {"completion", "source", "destination", "replicate", "spark", "console", "order run"}
WITHOUT_JSON = """
import argparse, json
from appliance import cli, command_line
from appliance.commands.order.command import SUBCOMMANDS, subcommand

def leaves(parser):
    nested = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return [leaf for each in nested for one in each.choices.values() for leaf in leaves(one)] or [parser]

commands = {name: command_line.command(name) for name in cli.COMMANDS if name != "order"}
commands |= {f"order {name}": subcommand(name) for name in SUBCOMMANDS}
without = []
for name, command in commands.items():
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    without += [name] * (not all("--json" in leaf._option_string_actions for leaf in leaves(parser)))
print(json.dumps(without))
"""
"""In a process of its own, since it imports every command."""


def test_every_command_that_prints_a_result_prints_it_as_json_too() -> None:
    command = [sys.executable, "-c", WITHOUT_JSON]
    said = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, check=True).stdout
    assert set(json.loads(said)) == NO_RESULT


def test_case_1462_the_states_of_a_promotion_have_times_of_iso_8601_in_json() -> None:
    # They were milliseconds, and ISO 8601 in the JSON of status.
    record = StateRecord("orders", CopyState.PROMOTED, 1_800_000_000_000, "me@vm", "moved", "1")
    (state,) = Report("replicator-orange", states=(record,)).document()["states"]  # type: ignore[misc]
    assert state["since"] == "2027-01-15T08:00:00.000Z"
