from pathlib import Path

import pytest

from appliance.engine.task.worker import work
from appliance.errors import PeerError, SettingsError
from appliance.sql.jobs.listener import transforming
from appliance.version import VERSION


def test_a_task_of_another_release_does_nothing_whatever_it_is_invited_to() -> None:
    with pytest.raises(PeerError, match=f"has release {VERSION} of the appliance and the replicator 0.0.1"):
        work("0.0.1", {"unheard": "of"}, transforming, 0, 0, {})


def test_a_host_without_the_path_of_its_settings_is_told_what_gives_it() -> None:
    with pytest.raises(SettingsError, match=r"APPLIANCE_ENV_FILE: missing on .*: .*`appliance spark worker`"):
        work(VERSION, {}, transforming, 0, 0, {})


def test_the_faults_of_a_hosts_settings_name_the_host(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^on .*: .*setenv.sh: no such file"):
        work(VERSION, {}, transforming, 0, 0, {"APPLIANCE_ENV_FILE": str(tmp_path / "setenv.sh")})
