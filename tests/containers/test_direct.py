"""Links without a tunnel, between clusters that the VM reaches itself.

The first is made by the prepare script of the destination VM alone. Then kafka-reo's four variables, and nothing else,
run the image: by Docker, docker-compose and Podman. That is the same link each time: the next container goes on where
the one before it has stopped.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from tests.containers.clusters import SECONDS
from tests.containers.link import CHECKOUT, Link, clone_into, prepare_in
from tests.containers.podman import podman
from tests.containers.programs.vpc import TOPICS
from tests.containers.sites import GRAPE, NEIGHBOURS, PLAIN_DESTINATION, PLAIN_SOURCE
from tests.containers.test_restarts import started_at_boot
from tests.containers.vpcs import Vpcs
from tests.support.docker_engine import Engine
from tests.support.image import IMAGE, image_archive

pytestmark = pytest.mark.asyncio(loop_scope="session")

COPY = "destination-topic"
RECORDS = 500
FOUR = {
    "KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS": str(PLAIN_SOURCE.bootstrap),
    "KAFKA_CLUSTERS_SOURCE_TOPIC": TOPICS[PLAIN_SOURCE.name],
    "KAFKA_CLUSTERS_DESTINATION_BOOTSTRAP_SERVERS": str(PLAIN_DESTINATION.bootstrap),
    "KAFKA_CLUSTERS_DESTINATION_TOPIC": COPY,
}


def composed(image: str) -> str:
    """The docker-compose.yml of the documents, with the image's name replaced."""
    [example] = re.findall(
        r"```yaml\n(services:.*?)```", (CHECKOUT / "docs" / "move" / "migrating.md").read_text(), re.DOTALL
    )
    return re.sub(r"(?<=image: ).*", image, example)


def deployed(image: str) -> str:
    """The deployment of Kubernetes, with the image's name replaced."""
    return re.sub(r"(?<=image: ).*", image, (CHECKOUT / "deploy" / "kubernetes" / "k8s-deployment.yml").read_text())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plain(link: Link) -> AsyncIterator[Vpcs]:
    """Both clusters in plain text, beside those of the link whose image is run."""
    async with link.vpcs.running(NEIGHBOURS.values()):
        yield link.vpcs


@pytest.fixture
def engine(link: Link) -> Engine:
    """The engine of the destination VM, which has the image."""
    return link.vpcs.engines[GRAPE.name]


async def more_is_copied(vpcs: Vpcs, who: str, logs: Callable[[], str], copy: str = COPY) -> None:
    """Produce more records, and wait until the copy has all, each once and in order; ``logs`` tell why it has not."""
    producer = await vpcs.produce(PLAIN_SOURCE, TOPICS[PLAIN_SOURCE.name], who, RECORDS, seconds=0)
    assert await producer.wait(60) == 0
    original = vpcs.records(PLAIN_SOURCE, TOPICS[PLAIN_SOURCE.name])
    deadline = time.monotonic() + SECONDS
    copied = []
    while sum(map(len, copied)) < sum(map(len, original)):
        assert time.monotonic() < deadline, logs()
        await asyncio.sleep(0.5)
        copied = vpcs.records(PLAIN_DESTINATION, copy) if copy in vpcs.topics(PLAIN_DESTINATION) else []
    assert copied == original


TOPIC = TOPICS[PLAIN_SOURCE.name]
PREPARED = {
    "SOURCE_CLUSTER_ID": PLAIN_SOURCE.name,
    "SOURCE_BROKER_SERVERS": str(PLAIN_SOURCE.bootstrap),
    "SOURCE_SECURITY_PROTOCOL": "PLAINTEXT",
    "SOURCE_ROUTE": "direct",
    "DESTINATION_CLUSTER_ID": PLAIN_DESTINATION.name,
    "DESTINATION_BROKER_SERVERS": str(PLAIN_DESTINATION.bootstrap),
    "DESTINATION_SECURITY_PROTOCOL": "PLAINTEXT",
    "REPLICA_TOPICS_SOURCE_REGEX": TOPIC,
    "REPLICA_TOPICS_DEST_SUFFIX": "prepared",
}
SERVICES = ("replicator", "control-center", "doctor")
AS_JSON = ("appliance", "doctor", "destination", "--json")
TUNNEL = re.compile(r"tunnel|gateway|source VM|SHARED_SECRET|shim", re.IGNORECASE)
"""What nobody speaks of where there is none."""


def has(engine: Engine) -> list[set[str]]:
    """The containers, networks and volumes of a VM."""
    listed = (("ps", "--all", "--quiet"), ("network", "ls", "--quiet"), ("volume", "ls", "--quiet"))
    return [set(engine.docker(*words).split()) for words in listed]


async def test_the_destination_vm_alone_is_prepared_copies_is_examined_and_leaves_nothing(
    engine: Engine, plain: Vpcs
) -> None:
    before, folder = has(engine), plain.directory / f"{GRAPE.name}-vm" / "kafka-cloud-replicator-direct"
    clone_into(folder, PREPARED)
    override = {"services": {name: {"dns": [GRAPE.dns.host]} for name in SERVICES}}
    (folder / "docker-compose.override.yml").write_text(yaml.safe_dump(override))
    said = prepare_in(folder, "prepare_dest_config.sh", plain, GRAPE)
    assert not TUNNEL.search(said.replace("without a tunnel", ""))
    name = f"{PLAIN_SOURCE.name}-{PLAIN_DESTINATION.name}"
    engine.docker("tag", IMAGE, f"kafka-cloud-replicator:{name}")
    engine.say("sh", "-c", started_at_boot(folder), folder=folder)
    try:
        logs = partial(engine.compose, folder, "logs")
        await more_is_copied(plain, "prepared", logs, f"{TOPIC}.prepared")
        diagnosis = engine.run("docker-compose", "run", "--rm", "-T", "doctor", *AS_JSON, folder=folder)
        assert diagnosis.returncode == 0, diagnosis.stdout
        assert not TUNNEL.search(diagnosis.stdout)
        page = re.findall(r"http://[0-9.:]+8082/", said)[0]
        pages = [plain.page(GRAPE, f"{page}{path}") for path in ("", f"links/{name}/", f"links/{name}/doctor")]
        assert not [text for text in pages if TUNNEL.search(text)]
        assert "answers on this VM" in pages[1]
    finally:
        engine.compose(folder, "down")
    history = f"{folder.name}_history"
    assert [now - then for now, then in zip(has(engine), before, strict=True)] == [set(), set(), {history}]
    engine.docker("volume", "rm", history)


async def test_docker_run_with_four_variables_copies_a_topic(link: Link, engine: Engine, plain: Vpcs) -> None:
    variables = [part for name, text in FOUR.items() for part in ("-e", f"{name}={text}")]
    container = engine.docker("run", "--detach", "--dns", GRAPE.dns.host, *variables, link.image).splitlines()[-1]
    try:
        await more_is_copied(plain, "docker-run", lambda: engine.docker("logs", container))
        assert "lag" in engine.docker("exec", container, "appliance", "status")
        engine.docker("stop", container)
        assert engine.docker("inspect", "--format", "{{.State.ExitCode}}", container) == "0"
    finally:
        engine.docker("rm", "--force", container)


async def test_docker_run_without_settings_says_which_it_needs(link: Link, engine: Engine) -> None:
    said = engine.run("docker", "run", "--rm", link.image)
    assert said.returncode == 2
    assert all(name in said.stderr for name in FOUR)
    assert "docs/move/migrating.md" in said.stderr


async def test_the_examples_of_the_documents_have_these_four_variables() -> None:
    service = yaml.safe_load(composed("image"))["services"]["replicator"]
    assert dict(line.split("=") for line in service["environment"]) == FOUR
    pod = yaml.safe_load(deployed("image"))["spec"]["template"]["spec"]
    assert {each["name"]: each["value"] for each in pod["containers"][0]["env"]} == FOUR


@pytest.mark.release  # the same image and variables as with docker run
async def test_its_docker_compose_with_the_images_name_replaced_copies_a_topic(
    link: Link, engine: Engine, plain: Vpcs, tmp_path: Path
) -> None:
    (tmp_path / "docker-compose.yml").write_text(composed(link.image))
    adapted = {"services": {"replicator": {"dns": [GRAPE.dns.host]}}}
    (tmp_path / "docker-compose.override.yml").write_text(yaml.safe_dump(adapted))
    engine.compose(tmp_path, "up", "-d")
    try:
        await more_is_copied(plain, "docker-compose", lambda: engine.compose(tmp_path, "logs"))
    finally:
        engine.compose(tmp_path, "down")


@pytest.mark.release  # the same image and variables as with docker run
async def test_its_kubernetes_deployment_with_the_images_name_replaced_copies_a_topic(
    plain: Vpcs, tmp_path: Path
) -> None:
    (tmp_path / "deployment.yml").write_text(deployed(f"localhost/{IMAGE}"))
    async with podman(plain.machines[GRAPE.name].vm, GRAPE.dns) as own:
        own.podman("load", "--input", str(image_archive()))
        own.podman("kube", "play", str(tmp_path / "deployment.yml"))
        await more_is_copied(plain, "podman", lambda: own.podman("pod", "logs", "--latest"))
