"""The settings and the environment of our replicator."""

from pathlib import Path

from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.values import Route, SecurityProtocol
from bench.lib.our_replicator import env_text
from bench.lib.running import environment


def test_its_settings_are_good_and_name_the_link(tmp_path: Path) -> None:
    path = tmp_path / "setenv.sh"
    path.touch(mode=0o600)
    path.write_text(env_text("127.0.21.1:1234", "127.0.22.1:1234", "measured", "ours1"))
    settings = read_settings(path, Role.REPLICATOR, {})
    assert (settings.replicator, settings.topics.suffix) == ("replicator-ours1", "ours1")
    assert (settings.route, settings.source.protocol) == (Route.DIRECT, SecurityProtocol.PLAINTEXT)
    assert settings.topics.regex == "measured"


def test_settings_of_a_real_link_in_our_environment_do_not_reach_it(tmp_path: Path) -> None:
    ours = {"SOURCE_BROKER_SERVERS": "prod:9092", "SHARED_SECRET": "hunter2", "PATH": "/bin", "HOME": "/home/a"}
    assert environment(ours, tmp_path).keys() == {"PATH", "HOME", "PYTHONPATH", "TMPDIR"}
