"""The commands of docs/start/two-vms.md, by its steps, run on both VMs word for word."""

import re
import shlex
import subprocess
import time
from pathlib import Path

from tests.containers.link import Link
from tests.containers.sites import Side

PAGE = (Path(__file__).parents[2] / "docs" / "start" / "two-vms.md").read_text()
PROGRAMS, FOLDER, SETTINGS, SOURCE, DESTINATION, LOOK = range(1, 7)


def commands(step: int) -> list[str]:
    """The lines of a step's commands."""
    text = re.split(r"^\*\*\d\. ", PAGE, flags=re.MULTILINE)[step].split("\n## ")[0]
    return [line for block in re.findall(r"^```\n(.*?)^```", text, re.M | re.S) for line in block.splitlines()]


def follow(link: Link) -> None:
    """Do what the page says, from the settings on; the programs and the folders are there already."""
    began = time.monotonic()
    for side in (link.source, link.destination):
        for command in commands(SETTINGS):
            run(link, side, command)
        path = link.folder(side) / "setenv.sh"
        path.write_text(filled_in(path.read_text(), link.variables()))
    for side, step in ((link.source, SOURCE), (link.destination, DESTINATION)):
        for command in commands(step):
            print(run(link, side, command))
    print(f"the page's commands took {time.monotonic() - began:.0f} s on both VMs")


def run(link: Link, side: Side, command: str, *codes: int) -> str:
    """Run a command of the page in the link's folder on a VM, with its Docker and a terminal; return the output.

    Its exit code must be 0, or one of ``codes``.
    """
    folder, program = link.folder(side), link.folder(side) / command.split()[0]
    if command.startswith("bin/prepare"):
        # The scripts' own Python environment is made outside, where there is a network.
        subprocess.run([program, "--help"], capture_output=True, env=link.vpcs.environment, check=True)
    environment = {**link.vpcs.engines[side.name].environment, **link.vpcs.environment}
    # docker-compose wants a terminal, as the user has one.
    in_folder = f"cd {shlex.quote(str(folder))} && {command}"
    words = ("script", "--quiet", "--return", "--command", in_folder, "/dev/null")
    outcome = link.vpcs.machines[side.name].vm.run(*words, environment=environment)
    assert outcome.returncode in (0, *codes), outcome
    return outcome.stdout.strip()


def filled_in(template: str, variables: dict[str, str]) -> str:
    """The template with these values in the place of its own."""
    for name, value in variables.items():
        line = re.compile(rf"^#?export {name}=.*$", re.MULTILINE)
        assert len(line.findall(template)) == 1, name
        template = line.sub(lambda _, text=f"export {name}='{value}'": text, template)
    return template
