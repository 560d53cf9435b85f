"""Compose finds the files of a link in its folder, as it found those of releases that wrote docker-compose.yml."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.containers.link import CHECKOUT, Link
from tests.containers.sites import GRAPE, Side
from tests.support.docker_engine import Engine


def containers(engine: Engine) -> dict[str, str]:
    """The ids of all containers of a VM, by the names of their services."""
    listed = engine.docker("ps", "--all", "--format", '{{.Label "com.docker.compose.service"}} {{.ID}}').splitlines()
    found = dict(line.split() for line in listed)
    assert len(found) == len(listed), listed
    return found


def test_before_a_prepare_script_has_run_compose_names_both_in_one_line_and_ends(link: Link, tmp_path: Path) -> None:
    shutil.copy(CHECKOUT / "docker-compose.yml", tmp_path)
    for command in (["up", "-d"], ["ps"], ["run", "--rm", "doctor"]):
        refused = link.vpcs.engines[GRAPE.name].run("docker-compose", *command, folder=tmp_path)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1), refused
        assert "run bin/prepare_src_config.sh or bin/prepare_dest_config.sh here first" in refused.stderr


@pytest.mark.parametrize("end", ["source", "destination"])
def test_containers_that_an_older_release_has_started_are_taken_over_and_none_is_doubled(link: Link, end: str) -> None:
    side: Side = getattr(link, end)
    folder, engine = link.folder(side), link.vpcs.engines[side.name]
    before, in_git = containers(engine), (folder / "docker-compose.yml").read_text()
    # That release wrote the same text as docker-compose.yml, and no .env.
    (folder / ".env").unlink()
    (folder / "prepared" / "docker-compose.yml").replace(folder / "docker-compose.yml")
    link.up(side)
    assert containers(engine) == before

    (folder / "docker-compose.yml").write_text(in_git)  # git checkout docker-compose.yml && git pull
    link.prepare_on(side)
    link.up(side)
    assert containers(engine) == before


def test_an_override_holds_once_prepared_and_recreates_a_container_without_a_second_one(link: Link) -> None:
    path, engine = link.folder(GRAPE) / "docker-compose.override.yml", link.vpcs.engines[GRAPE.name]
    before, services = containers(engine), yaml.safe_load(path.read_text())["services"] if path.exists() else {}
    path.write_text(yaml.safe_dump({"services": services | {"control-center": {"labels": {"mine": "1"}}}}))
    link.prepare_on(GRAPE)
    link.up(GRAPE)
    after = containers(engine)
    assert {name for name in after if after[name] != before.get(name)} == {"control-center"}
    assert len(after) == len(before)
    assert link.control_center.inspected()["Config"]["Labels"]["mine"] == "1"
