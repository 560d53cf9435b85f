"""systemd itself reads the units, and finds little that a role could do and need not."""

import re
import subprocess
from pathlib import Path

import pytest

from deploy.systemd.units import NAME, ROLES, files

EXPOSURE_MAX = 3.0


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("units")
    for name, text in files().items():
        (directory / name).write_text(text)
    return directory


@pytest.mark.parametrize("role", ROLES)
def test_the_unit_of_each_role_exposes_little(role: str, units: Path) -> None:
    line = ["systemd-analyze", "security", "--offline=true", "--no-pager", units / f"{NAME}-{role}@.service"]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Overall exposure level for .*: ([\d.]+) ", said)
    assert found
    assert float(found[1]) < EXPOSURE_MAX


@pytest.mark.parametrize("role", ROLES)
def test_systemd_knows_every_setting_of_each_unit(role: str, units: Path) -> None:
    unit = units / f"{NAME}-{role}@.service"
    unit.write_text(unit.read_text().replace(f"/opt/{NAME}/bin/appliance", "/bin/true"))
    line = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit]
    done = subprocess.run(line, capture_output=True, text=True)
    assert (done.returncode, re.findall(r"Unknown key|Failed to parse|invalid", done.stderr)) == (0, []), done.stderr


def test_the_user_of_all_units_is_what_sysusers_makes(units: Path, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    folder = tmp_path / "usr" / "lib" / "sysusers.d"
    folder.mkdir(parents=True)
    (folder / f"{NAME}.conf").write_text((units / f"{NAME}.conf").read_text())
    subprocess.run(["systemd-sysusers", f"--root={tmp_path}"], check=True)
    assert re.search(rf"^{NAME}:", (tmp_path / "etc" / "passwd").read_text(), re.MULTILINE)
