"""The node itself: it runs pods, and nothing of it outlives the process that started it."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from testbed.kubernetes.layout import PAUSE_IMAGE
from testbed.kubernetes.node import Node
from testbed.process import OwnedProcess

PROGRAM = """
import asyncio
from testbed.kubernetes.node import node

async def main():
    async with node(api_only=True) as made:
        print("running", made.layout.directory, flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""
ASK = r"""
found=$(busybox nslookup web.default.svc.cluster.local | busybox grep -A 1 ^Name)
address=${found##* }
printf 'GET / HTTP/1.0\r\n\r\n' | busybox nc $address 8080 | busybox grep hello
"""
SECONDS = 240.0
PATIENCE = "--timeout=120s"


def pod(*command: str) -> dict[str, object]:
    container = {"name": "only", "image": PAUSE_IMAGE, "command": list(command)}
    return {"containers": [container], "terminationGracePeriodSeconds": 1}


@pytest.mark.asyncio(loop_scope="session")
async def test_a_deployment_runs_and_another_pod_reaches_it_by_the_name_of_its_service(cluster: Node) -> None:
    labels = {"app": "web"}
    serve = pod("sh", "-c", "echo hello > /tmp/index.html && exec busybox httpd -f -p 8080 -h /tmp")
    template = {"metadata": {"labels": labels}, "spec": serve}
    ask = pod("sh", "-c", ASK)
    documents = [
        ("apps/v1", "Deployment", "web", {"selector": {"matchLabels": labels}, "template": template}),
        ("v1", "Service", "web", {"selector": labels, "ports": [{"port": 8080}]}),
    ]
    for version, kind, name, spec in documents:
        apply(cluster, version, kind, name, spec)
    cluster.kubectl("rollout", "status", "deployment/web", PATIENCE)
    job = {"template": {"spec": ask | {"restartPolicy": "OnFailure"}}}
    apply(cluster, "batch/v1", "Job", "ask", job)
    try:
        cluster.kubectl("wait", "--for=condition=complete", "job/ask", PATIENCE)
        assert cluster.kubectl("logs", "job/ask").endswith("hello\n")
    finally:
        cluster.kubectl("delete", "job/ask", "deployment/web", "service/web")


def apply(cluster: Node, version: str, kind: str, name: str, spec: object) -> None:
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
    cluster.kubectl("apply", "--filename", "-", given=json.dumps(document))


@pytest.mark.asyncio(loop_scope="session")
async def test_nothing_of_a_node_outlives_the_process_that_started_it_even_if_that_is_killed(tmp_path: Path) -> None:
    """The session's node runs meanwhile, so two can."""
    program = await OwnedProcess.start("owner", [sys.executable, "-c", PROGRAM], tmp_path / "log")
    directory = Path((await program.wait_for_line("^running", SECONDS)).split()[1])
    assert left_of(directory)
    os.kill(program.pid, signal.SIGKILL)
    async with asyncio.timeout(SECONDS):
        while left_of(directory):
            await asyncio.sleep(0.1)


def left_of(directory: Path) -> list[str]:
    """The node's files, control groups, mounts and processes."""
    groups = [str(path) for path in Path("/sys/fs/cgroup").rglob(directory.name)]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if directory.name in line]
    commands = {path.parent.name: path for path in Path("/proc").glob("[0-9]*/cmdline")}
    processes = [pid for pid, path in commands.items() if str(directory) in text(path)]
    return [*([str(directory)] if directory.exists() else []), *groups, *mounts, *processes]


def text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has just ended
        return ""
