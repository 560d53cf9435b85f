import os
import stat
from pathlib import Path

import pytest

from appliance.errors import SettingsError
from deploy.prepare.writing import write
from deploy.render.compose import RenderedFile

OWNER = (os.geteuid(), os.getegid())
OPEN = RenderedFile("prepared/docker-compose.yml", "# link\nservices: {}\n", 0o644)
CLOSED = RenderedFile("prepared/tunnel.sh", "# link\nexport SHARED_SECRET='hunter2'\n", 0o600)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("file", [OPEN, CLOSED], ids=lambda file: file.path)
def test_a_file_is_written_once_with_its_mode_and_then_left_alone(tmp_path: Path, file: RenderedFile) -> None:
    path = tmp_path / file.path
    assert write(tmp_path, file, OWNER, dry=False).state == "new"
    assert (path.read_text(), mode(path)) == (file.text, file.mode)
    inode = path.stat().st_ino
    assert write(tmp_path, file, OWNER, dry=False).state == "unchanged"
    assert path.stat().st_ino == inode


def test_others_list_nothing_in_the_folder_also_in_one_of_an_older_release_and_nothing_else_is_left_in_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "prepared").mkdir(0o700)
    write(tmp_path, CLOSED, OWNER, dry=False)
    write(tmp_path, OPEN, OWNER, dry=False)
    assert mode(tmp_path / "prepared") == 0o711
    assert sorted(path.name for path in (tmp_path / "prepared").iterdir()) == ["docker-compose.yml", "tunnel.sh"]


def test_a_dry_run_touches_nothing(tmp_path: Path) -> None:
    assert write(tmp_path, CLOSED, OWNER, dry=True).changed
    assert list(tmp_path.iterdir()) == []


def test_a_mode_that_was_opened_is_closed_again_and_told(tmp_path: Path) -> None:
    write(tmp_path, CLOSED, OWNER, dry=False)
    (tmp_path / CLOSED.path).chmod(0o644)
    outcome = write(tmp_path, CLOSED, OWNER, dry=False)
    assert (outcome.state, outcome.lines) == ("changed", ("prepared/tunnel.sh: mode 0644 -> 0600",))
    assert mode(tmp_path / CLOSED.path) == 0o600


def test_a_change_is_shown_but_not_the_whole_of_another_links_file(tmp_path: Path) -> None:
    write(tmp_path, OPEN, OWNER, dry=False)
    edited = write(tmp_path, RenderedFile(OPEN.path, "# link\nservices: {a: 1}\n", 0o644), OWNER, dry=False)
    assert (edited.state, edited.lines[-2:]) == ("changed", ("-services: {}", "+services: {a: 1}"))
    other = write(tmp_path, RenderedFile(OPEN.path, "# another link\n", 0o644), OWNER, dry=False)
    assert (other.state, other.lines) == ("replaced", ())


def test_settings_are_written_over_where_a_container_has_them_and_other_files_are_replaced(tmp_path: Path) -> None:
    for file in (OPEN, CLOSED):
        write(tmp_path, file, OWNER, dry=False)
    with (tmp_path / CLOSED.path).open() as mounted, (tmp_path / OPEN.path).open() as old:
        for file, text in ((OPEN, "# link\n"), (CLOSED, "# link\nexport A='1'\n")):
            write(tmp_path, RenderedFile(file.path, text, file.mode), OWNER, dry=False)
        assert mounted.read() == (tmp_path / CLOSED.path).read_text() == "# link\nexport A='1'\n"
        assert (old.read(), (tmp_path / OPEN.path).read_text()) == (OPEN.text, "# link\n")
    assert mode(tmp_path / CLOSED.path) == 0o600


def test_a_file_whose_place_cannot_be_had_is_one_clear_line_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / OPEN.path).mkdir(parents=True)
    with pytest.raises(SettingsError, match=rf"^{OPEN.path}: cannot be read or written: Is a directory$"):
        write(tmp_path, OPEN, OWNER, dry=False)
    assert list((tmp_path / OPEN.path).parent.iterdir()) == [tmp_path / OPEN.path]
