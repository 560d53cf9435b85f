"""A folder that is prepared already: whose it was, and what is left of that."""

from pathlib import Path

import pytest

from appliance.settings.role import Role
from deploy.prepare.preparation import Preparation, prepare
from deploy.prepare.writing import remove, write
from deploy.render.compose import COMPOSE_FILE, DESTINATION_VM, SOURCE_VM
from tests.support.settings import REQUIRED, write_settings


def prepared(folder: Path, role: Role, **changed: str) -> Preparation:
    """Prepare the folder, and write its files."""
    settings = REQUIRED | {"DNS_UPSTREAM": "192.0.2.53:53", "TUNNEL_RESOLVER": "192.0.2.53:53"} | changed
    made = prepare(folder, write_settings(folder / "setenv.sh", settings), role, {})
    for file in made.files:
        write(folder, file, made.owner, dry=False)
    for path in made.stale_files:
        remove(folder, path, dry=False)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "link").mkdir()
    return tmp_path / "link"


def files(folder: Path) -> set[str]:
    return {path.name for path in (folder / "prepared").iterdir()}


@pytest.mark.parametrize(("was", "becomes"), [(DESTINATION_VM, SOURCE_VM), (SOURCE_VM, DESTINATION_VM)])
def test_case_1490_the_role_of_a_vm_of_an_older_release_is_known_by_its_files(
    folder: Path, was: Role, becomes: Role
) -> None:
    # Up to 0.2.0 docker-compose.yml was elsewhere: the wrong script changed the role without asking, and left secrets.
    prepared(folder, was)
    before = files(folder)
    (folder / COMPOSE_FILE).unlink()
    assert not prepared(folder, was).change_of_role
    (folder / COMPOSE_FILE).unlink()
    changed = prepared(folder, becomes)
    assert changed.change_of_role.startswith("this folder is prepared as the ")
    assert changed.before - changed.services
    assert files(folder) == {Path(file.path).name for file in changed.files}
    prepared(folder, was)
    assert files(folder) == before


def test_case_1490_the_gateway_of_an_older_release_goes_where_there_is_no_tunnel_any_more(folder: Path) -> None:
    # Its container stayed, and its file with SHARED_SECRET.
    prepared(folder, DESTINATION_VM)
    (folder / COMPOSE_FILE).unlink()
    direct = prepared(folder, DESTINATION_VM, SOURCE_ROUTE="direct")
    assert not direct.change_of_role
    assert direct.before - direct.services == {"gateway"}
    assert not [path for path in (folder / "prepared").iterdir() if REQUIRED["SHARED_SECRET"] in path.read_text()]


def test_case_1490_what_a_former_role_left_is_removed_whenever_it_is_found(folder: Path) -> None:
    prepared(folder, SOURCE_VM)
    (folder / "prepared" / "gateway.sh").write_text("left by a release before")
    assert "prepared/gateway.sh" in prepared(folder, SOURCE_VM).stale_files
    assert "gateway.sh" not in files(folder)
