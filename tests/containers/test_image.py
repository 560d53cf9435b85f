"""The image alone: its size, what ``docker run`` does, what Spark and Java can do in it, and how it is carried."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.containers.link import Link
from tests.containers.sites import GRAPE
from tests.support.docker_engine import Engine, engine
from tests.support.image import IMAGE, build_context, built_id, furnish, image_provenance
from tests.support.namespace import namespaces

BYTES_MAX = 600_000_000
LAST_LAYER_BYTES_MAX = 20_000_000
FEATURES = Path(__file__).parent / "programs" / "spark_features.py"


@pytest.fixture
def docker(link: Link) -> Engine:
    """An engine that has the image."""
    return link.vpcs.engines[GRAPE.name]


def test_it_is_below_600_mb_and_an_upgrade_ships_its_last_layer_alone(docker: Engine) -> None:
    [image] = json.loads(docker.docker("image", "inspect", IMAGE))
    assert image["Size"] < BYTES_MAX
    sizes = docker.docker("history", "--human=false", "--format", "{{.Size}}", IMAGE).splitlines()
    assert 0 < next(int(size) for size in sizes if size != "0") < LAST_LAYER_BYTES_MAX


def test_its_labels_say_what_it_is_and_which_release(docker: Engine) -> None:
    [image] = json.loads(docker.docker("image", "inspect", IMAGE))
    labels = {name.removeprefix("org.opencontainers.image."): text for name, text in image["Config"]["Labels"].items()}
    assert {"title", "description", "licenses", "version", "revision"} <= set(labels)
    assert labels["version"] == IMAGE.partition(":")[2]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("appliance", "--help"), "Copies Kafka topics"),
        (("--help",), "Copies Kafka topics"),
        (("verify", "--help"), "usage: appliance verify"),
        (("python", "-c", "print(6 * 7)"), "42"),
        (("java", "-version"), "17."),
        (("cat", "/etc/debian_version"), "12."),
    ],
    ids=["appliance", "option", "command", "python", "java", "debian"],
)
def test_docker_run_takes_any_command(docker: Engine, words: tuple[str, ...], expected: str) -> None:
    assert expected in docker.docker("run", "--rm", IMAGE, *words)


def test_docker_run_takes_its_settings_from_an_env_file_and_one_line_says_what_is_wrong(
    docker: Engine, tmp_path: Path
) -> None:
    (tmp_path / "settings").write_text("SOURCE_CLUSTER_ID=orange grove\n")
    outcome = docker.run("docker", "run", "--rm", "--env-file", str(tmp_path / "settings"), IMAGE, "status")
    assert outcome.returncode == 2
    assert "SOURCE_CLUSTER_ID" in outcome.stderr


@pytest.mark.release  # minutes on a busy machine; each submission copies, verifies and examines with the same image
def test_spark_does_all_that_the_appliance_asks_of_it(docker: Engine) -> None:
    mounted = f"type=bind,source={FEATURES},target=/features.py,readonly"
    said = docker.docker("run", "--rm", "--mount", mounted, IMAGE, "python", "/features.py")
    assert [line for line in said.splitlines() if line.startswith(("used", "submitted"))] == [
        "used local[2]",
        "used spark://127.0.0.1:7077",
        "submitted",
    ]


def test_java_has_elliptic_curves_and_trusts_the_public_authorities(docker: Engine) -> None:
    key = "keytool -genkeypair -keyalg EC -groupname secp256r1 -alias a -dname CN=a -keystore /tmp/k -storepass secret"
    docker.docker("run", "--rm", IMAGE, *key.split())
    listed = docker.docker("run", "--rm", IMAGE, "keytool", "-list", "-cacerts", "-storepass", "changeit")
    assert listed.count("trustedCertEntry") > 50


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def fresh() -> AsyncIterator[Engine]:
    """The engine of a VM without internet."""
    with namespaces(["offline"]) as [machine]:
        async with engine(machine) as made:
            yield made


@pytest.mark.asyncio(loop_scope="session")
async def test_a_saved_image_is_checked_and_loaded_on_a_vm_without_internet(docker: Engine, fresh: Engine) -> None:
    with build_context() as folder:
        (folder / "image").mkdir()
        (folder / "image" / image_provenance().name).write_bytes(image_provenance().read_bytes())
        program, file = str(folder / "bin" / "image"), folder / "carried.tar"
        docker.say(program, "save", str(file))
        damaged = bytearray(file.read_bytes())
        assert IMAGE in fresh.say(program, "load", str(file))
        assert "Copies Kafka" in fresh.docker("run", "--rm", "--network", "none", IMAGE, "--help")
        damaged[len(damaged) // 2] ^= 1
        file.write_bytes(damaged)
        refused = fresh.run(program, "load", str(file))
    assert refused.returncode == 1
    assert "another checksum" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.release  # the parts: tests/unit/deploy/image/test_normal.py
@pytest.mark.asyncio(loop_scope="session")
async def test_a_second_build_on_another_engine_gives_the_same_image_bit_for_bit(fresh: Engine) -> None:
    with build_context() as folder:
        arguments = [f"--build-arg={argument}" for argument in furnish(folder, fresh)]
        said = fresh.say(str(folder / "bin" / "image"), "build", *arguments, "--name", "second:1")
    assert built_id() in said
