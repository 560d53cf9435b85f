"""``python -m deploy.prepare source|destination``, in the link's folder."""

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from appliance.errors import ApplianceError, SettingsError
from appliance.output import say, say_error
from appliance.runtime.confinement import keep_memory_private
from appliance.settings.values import Route, Settings, Side
from deploy.docker import compose_command
from deploy.prepare import report
from deploy.prepare.checks import made_up_name_warnings
from deploy.prepare.compose_env import write_env
from deploy.prepare.preparation import prepare, read
from deploy.prepare.vm import notes, resolver
from deploy.prepare.writing import remove, write
from deploy.render.compose import DESTINATION_VM, SOURCE_VM
from deploy.render.firewall import FORMATS, ready, rules

_DESCRIPTION = """\
Checks setenv.sh, and writes the folder prepared/, and .env, by which Compose
finds the files in it.

Then prints the changes, the firewall rules of the link, and the next command.
Run again with the same settings it changes nothing. For a total order
(GLOBAL_CLUSTERS), both scripts prepare the VM alike. Exit codes: 0 done;
1 failed, or with --check: something would change; 2 bad usage or settings, all
faults at once.
"""
_SCRIPTS: dict[str, str] = {Side.SOURCE: "bin/prepare_src_config.sh", Side.DESTINATION: "bin/prepare_dest_config.sh"}
_OTHERS = (
    "on each other VM, with the same settings but GLOBAL_CLUSTER:",
    "bin/prepare_src_config.sh or bin/prepare_dest_config.sh, which do the same",
)
_NO_OTHER = ("on another VM:", "nothing, this one reaches both clusters itself (docs/start/direct.md)")
_NO_TERMINAL = 1000
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
    parser.add_argument(
        "--change-role", action="store_true", help="make the other VM of the link of a prepared folder, without asking"
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
    if not (parsed.check or parsed.change_role):
        _agree(prepared.change_of_role)
    outcomes = [write(Path(), file, prepared.owner, dry=parsed.check) for file in prepared.files]
    outcomes.append(write_env(Path(), prepared.env, dry=parsed.check))
    outcomes += filter(None, (remove(Path(), path, dry=parsed.check) for path in prepared.stale_files))
    name = report.name(prepared.settings, machine)
    say(*report.heading(prepared.settings, machine).split("\n"))
    warnings = [*prepared.env.hidden_by(os.environ), *prepared.warnings]
    if parsed.check and prepared.change_of_role:
        warnings.append(prepared.change_of_role)
    if "tunnel" in prepared.services:
        warnings += made_up_name_warnings(prepared.settings.tunnel, resolver())
    say(*report.warnings(warnings).splitlines())
    say(*report.written(outcomes, dry=parsed.check).split("\n"))
    say(*report.firewall(rules(prepared.settings), name, _width()).split("\n"))
    if parsed.check:
        return 1 if any(outcome.changed for outcome in outcomes) else 0
    say(*report.what_next(compose_command(), prepared, _other(machine, prepared.settings), notes()).split("\n"))
    return 0


def _agree(change: str) -> None:
    """Ask before a VM becomes another one; nothing is written until then."""
    if not change:
        return
    if not sys.stdin.isatty():
        raise SettingsError([f"{change}: there is no terminal to ask at: give --change-role if that is meant"])
    say(f"{change}: go on? [y/N] ", end="", error=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ApplianceError("nothing was changed")


def _width() -> int:
    """The columns of the terminal, or those that COLUMNS says; no line is too long for a file."""
    return shutil.get_terminal_size((80 if sys.stdout.isatty() else _NO_TERMINAL, 0)).columns


def _other(machine: Side, settings: Settings) -> tuple[str, str]:
    if settings.source.member:
        return _OTHERS
    if settings.route is Route.DIRECT:
        return _NO_OTHER
    side = Side.DESTINATION if machine is Side.SOURCE else Side.SOURCE
    return f"on the {side} VM, with the same settings:", _SCRIPTS[side]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # at its question, too
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the reader may have closed the pipe; the files are written by then
    sys.exit(main(sys.argv[1:]))
