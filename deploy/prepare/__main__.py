"""``python -m deploy.prepare source|destination``, in the link's folder."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from appliance.errors import ApplianceError
from appliance.output import say, say_error
from appliance.runtime.confinement import keep_memory_private
from appliance.settings.values import Side
from deploy.docker import compose_command
from deploy.prepare import report
from deploy.prepare.checks import made_up_name_warnings
from deploy.prepare.compose_env import write_env
from deploy.prepare.preparation import prepare, read
from deploy.prepare.vm import notes, resolver
from deploy.prepare.writing import write
from deploy.render.compose import DESTINATION_VM, SOURCE_VM
from deploy.render.firewall import FORMATS, ready, rules

_DESCRIPTION = """\
Checks setenv.sh, and writes the folder prepared/, and .env, by which Compose finds the files in it.

Then prints the changes, the firewall rules of the link, and the next command. Run again with the same
settings it changes nothing. For a total order (GLOBAL_CLUSTERS), both scripts prepare the VM alike. Exit
codes: 0 done; 1 failed, or with --check: something would change; 2 bad usage or settings, all faults at once.
"""
_SCRIPTS: dict[str, str] = {Side.SOURCE: "bin/prepare_src_config.sh", Side.DESTINATION: "bin/prepare_dest_config.sh"}
_OTHERS = (
    "on each other VM, with the same settings but GLOBAL_CLUSTER:",
    "bin/prepare_src_config.sh or bin/prepare_dest_config.sh, which do the same",
)
_ROLES = {Side.SOURCE: SOURCE_VM, Side.DESTINATION: DESTINATION_VM}


def main(arguments: Sequence[str]) -> int:
    """Prepare the VM and return the exit code."""
    keep_memory_private()
    script = _SCRIPTS.get(arguments[0] if arguments else "", "python -m deploy.prepare")
    parsed = _parser(script).parse_args(arguments)
    try:
        return _run(Side(parsed.machine), parsed)
    except ApplianceError as error:
        say_error(script, error)
        return error.exit_code


def _parser(script: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=script, description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("machine", choices=list(_ROLES), help=argparse.SUPPRESS)
    parser.add_argument(
        "--env-file",
        type=Path,
        default=Path("setenv.sh"),
        metavar="PATH",
        help="the settings (default: setenv.sh in the link's folder); the process environment takes precedence",
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--check", action="store_true", help="write nothing, and show the changes")
    instead.add_argument(
        "--firewall",
        choices=FORMATS,
        metavar="FORMAT",
        help=f"print only the firewall rules, for {', '.join(FORMATS)}",
    )
    return parser


def _run(machine: Side, parsed: argparse.Namespace) -> int:
    if parsed.firewall:
        settings, _ = read(parsed.env_file, _ROLES[machine], os.environ)
        say(*ready(parsed.firewall, settings, report.name(settings, machine)).splitlines())
        return 0
    prepared = prepare(Path(), parsed.env_file, _ROLES[machine], os.environ)
    outcomes = [write(Path(), file, prepared.owner, dry=parsed.check) for file in prepared.files]
    outcomes.append(write_env(Path(), prepared.env, dry=parsed.check))
    say(*report.heading(prepared.settings, machine).split("\n"))
    warnings = prepared.env.hidden_by(os.environ)
    if machine is Side.SOURCE or prepared.settings.source.member:
        warnings += made_up_name_warnings(prepared.settings.tunnel, resolver())
    say(*report.warnings(warnings).splitlines())
    say(*report.written(outcomes, dry=parsed.check).split("\n"))
    say(*report.firewall(rules(prepared.settings), report.name(prepared.settings, machine)).split("\n"))
    if parsed.check:
        return 1 if any(outcome.changed for outcome in outcomes) else 0
    other = _other(machine) if not prepared.settings.source.member else _OTHERS
    say(*report.what_next(compose_command(), prepared, other, notes()).split("\n"))
    return 0


def _other(machine: Side) -> tuple[str, str]:
    side = Side.DESTINATION if machine is Side.SOURCE else Side.SOURCE
    return f"on the {side} VM, with the same settings:", _SCRIPTS[side]


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the reader may have closed the pipe; the files are written by then
    sys.exit(main(sys.argv[1:]))
