"""The prepare scripts in a checkout: no file in Git changes, Compose finds what they write, and upgrades go on."""

import re
import shutil
import socket
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.start.folder import ADDRESS, CLONED, DESTINATION, SOURCE, Link
from tests.support.releases import CHANGELOG, archived, sections


@pytest.mark.parametrize("script", [SOURCE, DESTINATION])
def test_a_checkout_stays_as_git_has_it(link: Link, script: str) -> None:
    link.commit("release")
    (link.folder / "docker-compose.override.yml").write_text("services: {gateway: {labels: {mine: yes}}}\n")
    code, _, err = link.run(script)
    assert code == 0, err
    assert link.git("status", "--porcelain") == ""


def test_compose_finds_the_files_by_env_whose_other_lines_and_mode_stay_the_users(link: Link) -> None:
    path = link.folder / ".env"
    path.write_bytes(b"COMPOSE_PROFILES=more\r\nPASSWORD='hunter 3'")
    path.chmod(0o600)
    code, out, err = link.run(SOURCE)
    assert (code, err, "hunter" in out) == (0, "", False)
    assert "+COMPOSE_FILE=docker-compose.yml:prepared/docker-compose.yml\n" in out
    assert path.read_bytes().startswith(b"COMPOSE_PROFILES=more\r\nPASSWORD='hunter 3'\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    (link.folder / "docker-compose.override.yml").write_text("services: {tunnel: {labels: {mine: yes}}}\n")
    assert "prepared/docker-compose.yml:docker-compose.override.yml\n" in link.run(SOURCE)[1]
    assert "Files: nothing has changed\n" in link.run(SOURCE)[1]
    (link.folder / "docker-compose.override.yml").unlink()
    assert "+COMPOSE_FILE=docker-compose.yml:prepared/docker-compose.yml\n" in link.run(SOURCE)[1]


def test_an_env_with_other_files_is_refused_in_one_line_and_nothing_is_written(link: Link) -> None:
    (link.folder / ".env").write_text("COMPOSE_FILE=docker-compose.yml:mine.yml\n")
    before = link.files()
    code, out, err = link.run(SOURCE)
    assert (code, out, link.files()) == (2, "", before)
    assert err == (
        f"bin/{SOURCE}: .env: COMPOSE_FILE=docker-compose.yml:mine.yml: expected "
        "docker-compose.yml:prepared/docker-compose.yml first, and then files of your own\n"
    )


def test_a_shell_that_hides_env_is_warned_of(link: Link) -> None:
    assert "COMPOSE_FILE" not in link.run(SOURCE, "--check")[1]
    code, out, _ = link.run(SOURCE, COMPOSE_FILE="elsewhere.yml")
    assert code == 0
    assert "COMPOSE_FILE is set in this shell, and Compose takes it before the one in .env: unset COMPOSE_FILE" in out


def test_an_image_of_a_registry_is_run_and_not_built(link: Link) -> None:
    link.set(IMAGE=f"registry.example:5000/kafka/replicator@sha256:{'a1' * 32}")
    code, _, err = link.run(DESTINATION)
    assert code == 0, err
    services = yaml.safe_load(link.files()["prepared/docker-compose.yml"])["services"].values()
    assert {service["image"] for service in services} == {f"registry.example:5000/kafka/replicator@sha256:{'a1' * 32}"}
    assert not [service for service in services if "build" in service]
    assert not [path for path, text in link.files().items() if "IMAGE" in text and path.startswith("prepared/")]
    link.set(IMAGE="registry.example/Kafka Replicator")
    code, _, err = link.run(DESTINATION)
    assert (code, err.count("\n")) == (2, 1)
    assert re.match(
        rf"bin/{DESTINATION}: setenv.sh:\d+: IMAGE=registry.example/Kafka Replicator: expected an image, such as ",
        err,
    )


def test_case_1410_the_ports_of_the_links_own_containers_are_its_own_after_an_upgrade(link: Link, port: str) -> None:
    # The file that told which ports they are was restored for `git pull`: "another program has ...: stop it".
    link.run(SOURCE)
    (link.folder / ".env").unlink()
    (link.folder / "prepared" / "docker-compose.yml").unlink()
    with socket.create_server((ADDRESS, int(port))):
        code, _, err = link.run(SOURCE)
    assert code == 0, err


def test_case_1411_the_ports_of_the_links_own_containers_are_its_own_where_prepared_was_removed(
    link: Link, port: str
) -> None:
    link.run(SOURCE)
    shutil.rmtree(link.folder / "prepared")
    with socket.create_server((ADDRESS, int(port))):
        code, _, err = link.run(SOURCE)
    assert code == 0, err


def test_case_1412_a_symbolic_link_beside_a_folder_is_no_other_link(link: Link) -> None:
    # "TUNNEL_PORT: the link in .../other publishes ... too: choose another", of the folder itself.
    link.run(SOURCE)
    link.folder.with_name("other").symlink_to(link.folder)
    code, out, err = link.run(SOURCE)
    assert (code, "Files: nothing has changed" in out) == (0, True), err


def test_a_link_of_an_older_release_beside_has_its_ports(link: Link, port: str) -> None:
    link.run(SOURCE)
    (link.folder / "prepared" / "docker-compose.yml").replace(link.folder / "docker-compose.yml")
    name = "kafka-cloud-replicator-orange-lemon"
    changes = {"DESTINATION_CLUSTER_ID": "lemon", "TUNNEL_LISTEN": ADDRESS, "TUNNEL_PORT": port}
    code, _, err = Link(link.folder.with_name(name), link.cache, changes).run(SOURCE)
    assert (code, f"TUNNEL_PORT: the link in {link.folder} publishes {ADDRESS}:{port} too" in err) == (2, True)


@pytest.mark.release  # needs this repository's history
def test_a_checkout_in_which_0_2_0_was_prepared_is_upgraded_as_its_page_says_and_back(
    link: Link, port: str, tmp_path: Path
) -> None:
    link.commit("new")
    [commit] = [each.commit for each in sections(CHANGELOG.read_text()) if each.version == "0.2.0"]
    old = archived(commit, tmp_path / "old")
    link.git("checkout", "--quiet", "--orphan", "old")
    link.git("rm", "-r", "--force", "--quiet", ".")
    for name in CLONED:
        (shutil.copytree if (old / name).is_dir() else shutil.copy2)(old / name, link.folder / name)
    link.commit("old")
    assert link.run(SOURCE)[0] == 0
    assert link.git("status", "--porcelain").split() == ["M", "docker-compose.yml"]

    pulled = link.git("commit-tree", "new^{tree}", "-p", "old", "-m", "the next release").strip()
    with pytest.raises(subprocess.CalledProcessError):
        link.git("merge", "--quiet", "--ff-only", pulled)
    link.git("checkout", "docker-compose.yml")
    link.git("merge", "--quiet", "--ff-only", pulled)
    with socket.create_server((ADDRESS, int(port))):  # its containers run
        code, _, err = link.run(SOURCE)
    assert code == 0, err
    assert link.git("status", "--porcelain") == ""

    (link.folder / ".env").unlink()
    link.git("checkout", "--quiet", f"{pulled}~1")
    assert link.run(SOURCE)[0] == 0
    assert f"{ADDRESS}:{port}:{port}" in (link.folder / "docker-compose.yml").read_text()
