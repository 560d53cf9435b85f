"""A process with secrets: no core dump, no look into its memory by its user, and no file that it does not read."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.settings.values import Side
from bench.lib.running import OWN_ADDRESS, free_port
from tests.support.authority import Authority, replace, write_files
from tests.support.gateway import gateway_process, gateway_variables
from tests.support.patience import PATIENCE

SOMEBODY = 10001
BECOME_SOMEBODY = f"""
import ctypes, os, sys
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({SOMEBODY}); os.setuid({SOMEBODY})
"""
LOOK = f"""{BECOME_SOMEBODY}
for name in ("environ", "mem", "maps"):
    try:
        os.close(os.open(f"/proc/{{sys.argv[1]}}/{{name}}", os.O_RDONLY))
        print(name)
    except PermissionError:
        pass
"""
STARTED = f"""
import shutil  # what it imports later: that user may not read our Python
import appliance.commands.completion
from appliance import command_line
{BECOME_SOMEBODY}
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as in a process that began with this user
print("begun", flush=True)
sys.stdin.readline()
try:
    command_line.run(["completion", "--none"])
except SystemExit:
    print("ready", flush=True)
sys.stdin.read()
"""
READING = """
import sys
from pathlib import Path
from appliance.runtime.confinement import read_only
named, other, link = map(Path, sys.argv[1:])
version = read_only((named, link))
def tried(work):
    try:
        work()
        return "yes"
    except PermissionError:
        return "no"
import decimal, xml.dom.minidom, socket, tempfile, ssl, os
ssl.create_default_context()
socket.getaddrinfo("localhost", 1)
ways = {
    "read": named.read_bytes, "read beside": (named.parent / "beside").read_bytes, "follow": link.read_bytes,
    "read other": other.read_bytes, "list other": lambda: os.listdir(other.parent),
    "write": lambda: named.write_bytes(b""), "make": lambda: other.with_name("new").touch(),
    "execute": lambda: os.execv("/bin/true", ["true"]),
}
print(version, *(f"{name}:{tried(work)}" for name, work in ways.items()), sep="|")
"""

RENEWED = """
import sys
from pathlib import Path
from appliance.runtime.confinement import read_only
from appliance.settings.pem_files import read_pem
named, other = map(Path, sys.argv[1:])
assert read_only((named,)) > 0, "this kernel has no Landlock"
for path in (named, named, other):
    try:
        print(read_pem(path).decode(), flush=True)
    except ValueError as error:
        print(error, flush=True)
    sys.stdin.readline()
"""


def seen(process: subprocess.Popen[str]) -> list[str]:
    """The parts of a process that another one of its user can open."""
    look = [sys.executable, "-I", "-c", LOOK, str(process.pid)]
    return subprocess.run(look, capture_output=True, text=True, check=True).stdout.split()


def test_case_1012_no_other_process_of_its_user_reads_its_memory_and_none_is_dumped() -> None:
    """Before, its environment and memory were open to every process of its user, and to a core dump."""
    command = [sys.executable, "-c", STARTED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        assert seen(process) == ["environ", "mem", "maps"]
        process.stdin.write("go on\n")
        process.stdin.flush()
        while process.stdout.readline() != "ready\n":
            assert process.poll() is None
        assert seen(process) == []
        limits = Path(f"/proc/{process.pid}/limits").read_text()
        assert re.search(r"^Max core file size +0 +0 ", limits, re.MULTILINE)
        process.stdin.close()


def test_a_confined_process_reads_named_files_and_what_python_imports_and_nothing_else(tmp_path: Path) -> None:
    for folder in ("mine", "others", "linked"):
        (tmp_path / folder).mkdir()
    named, beside, other, target = (
        tmp_path / name for name in ("mine/named", "mine/beside", "others/file", "linked/target")
    )
    for file in (named, beside, other, target):
        file.write_bytes(b"text")
    link = tmp_path / "mine" / "link"
    link.symlink_to(target)
    command = [sys.executable, "-c", READING, *map(str, (named, other, link))]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]).stdout
    version, *ways = said.strip().split("|")
    assert int(version) > 0, "this kernel has no Landlock"
    assert ways == [
        "read:yes",
        "read beside:yes",
        "follow:yes",
        "read other:no",
        "list other:no",
        "write:no",
        "make:no",
        "execute:no",
    ]


def test_case_1048_a_confined_process_reads_by_a_symbolic_link_that_is_replaced(tmp_path: Path) -> None:
    """And it tells whose refusal it is where it may not read."""
    for folder in ("certificates/1", "certificates/2", "others"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file").write_text(folder[-1])
    (current := tmp_path / "certificates" / "current").symlink_to("1")
    command = [sys.executable, "-c", RENEWED, str(current / "file"), str(tmp_path / "others" / "file")]
    at = Path(__file__).parents[3]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=at) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "1\n"
        (new := current.with_name("new")).symlink_to("2")
        new.replace(current)
        process.stdin.write("go on\n" * 3)
        process.stdin.close()
        assert process.stdout.readline() == "2\n"
        assert process.stdout.readline() == "expected a readable PEM file: Permission denied, by Landlock\n"


@pytest.mark.parametrize(("side", "command"), [(Side.SOURCE, "source"), (Side.DESTINATION, "destination")])
async def test_a_confined_end_takes_renewed_certificate_files_and_resolves_names(
    tmp_path: Path, side: Side, command: str
) -> None:
    authority = Authority("fruit")
    files = write_files(tmp_path / "pem", authority.pem, authority.leaf(side))
    named = {
        "TUNNEL_AUTHORITY_FILE": str(files.authority),
        "TUNNEL_CERTIFICATE_FILE": str(files.certificate),
        "TUNNEL_KEY_FILE": str(files.key),
        "DNS_LISTEN": f"{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}",
    }
    variables = gateway_variables(9092, free_port(OWN_ADDRESS), **named)
    async with gateway_process(command, variables, tmp_path) as process:
        assert re.search("files confined landlock=[1-9]", process.log_file.read_text())
        leaf = authority.leaf(side)
        replace(files.key, leaf.key)
        replace(files.certificate, leaf.certificate)
        await process.wait_for_line("certificate files taken", PATIENCE)
