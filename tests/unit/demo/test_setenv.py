"""The demo's setenv.sh as the appliance reads it, and the environment of the processes."""

from pathlib import Path

import pytest

from appliance.settings import variables
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import Route, SecurityProtocol, Settings
from demo.input import REGEX, SUFFIX
from demo.setenv import ClusterAccess, LinkAddresses, process_environment, setenv_text
from testbed.plan import ApiKey

DOMAIN = "orange.vpc-1a2b3c.example"
ORANGE = tuple(Target(f"b{number}.{DOMAIN}", 9093) for number in range(3))
GRAPE = (Target("127.0.2.1", 19092),)
ADDRESSES = LinkAddresses(
    Target("127.0.0.1", 15061),
    Target("127.0.0.1", 5353),
    Target("127.0.1.53", 5354),
    Target("127.0.0.1", 8181),
    Target("127.0.0.1", 8180),
)


@pytest.fixture
def text(tmp_path) -> str:
    ca_file = tmp_path / "ca.pem"
    ca_file.touch()
    source = ClusterAccess("orange", ORANGE, ApiKey("orange_key", Secret("one")), ca_file)
    destination = ClusterAccess("grape", GRAPE, ApiKey("grape_key", Secret("two")), ca_file)
    return setenv_text(source, destination, ADDRESSES)


def read(text: str, tmp_path: Path, role: Role) -> Settings:
    env_file = tmp_path / "setenv.sh"
    env_file.touch(mode=0o600)
    env_file.write_text(text)
    return read_settings(env_file, role, {})


@pytest.mark.parametrize("role", [Role.SOURCE, Role.DESTINATION])
def test_both_ends_of_the_tunnel_take_it_and_agree(text, tmp_path, role):
    tunnel = read(text, tmp_path, role).tunnel
    assert tunnel.link == "orange-grape"
    assert tunnel.server == tunnel.listen == ADDRESSES.tunnel
    assert tunnel.allowed.exact == ORANGE[:1]
    assert all(tunnel.allowed.allows(target) for target in ORANGE)


def test_the_source_asks_its_own_network_for_the_brokers(text, tmp_path):
    tunnel = read(text, tmp_path, Role.SOURCE).tunnel
    assert tunnel.resolver == ADDRESSES.vpc_resolver
    assert [str(network) for network in tunnel.broker_networks] == ["127.0.1.0/24"]


def test_the_replicator_would_go_through_the_tunnel_with_tls_and_its_keys(text, tmp_path):
    no_authority = "\n".join(line for line in text.splitlines() if "CA_FILE" not in line)
    settings = read(no_authority, tmp_path, Role.REPLICATOR)
    assert settings.route is Route.TUNNEL
    assert settings.dns.listen == ADDRESSES.shim
    assert {settings.source.protocol, settings.destination.protocol} == {SecurityProtocol.SASL_SSL}
    assert (settings.source.api_key, settings.source.api_secret.reveal()) == ("orange_key", "one")
    assert (settings.destination.api_key, settings.destination.api_secret.reveal()) == ("grape_key", "two")
    assert (settings.destination.bootstrap, settings.topics.regex, settings.topics.suffix) == (GRAPE, REGEX, SUFFIX)


def test_the_users_own_settings_do_not_reach_the_demo(tmp_path):
    theirs = {variable.name: "production" for variable in variables.TABLE}
    environment = process_environment({**theirs, "PATH": "/bin", "PYTHONPATH": "/theirs"}, tmp_path)
    assert not theirs.keys() & environment.keys()
    assert environment["PATH"] == "/bin"
    assert environment["PYTHONPATH"].endswith(":/theirs")


def test_temporary_files_go_to_the_scratch_directory(tmp_path):
    assert process_environment({"TMPDIR": "/tmp"}, tmp_path)["TMPDIR"] == str(tmp_path)
