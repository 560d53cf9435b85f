"""A process with secrets: no core dump, no look into its memory by its user, and no file that it does not read."""

import re
import subprocess
import sys
from pathlib import Path

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
from appliance import cli
{BECOME_SOMEBODY}
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as in a process that began with this user
print("begun", flush=True)
sys.stdin.readline()
try:
    cli.main(["--help"])
except SystemExit:
    print("ready", flush=True)
sys.stdin.read()
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
