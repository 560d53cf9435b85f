"""The rows of the tunnel benchmark, from its trials, and the settings of both tunnels."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from appliance.errors import ToolMissing
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.target import Target
from bench.cases.tunnel import Trial, UnderFlood, rows
from bench.lib.row import Row
from bench.lib.tunnel_load import Latency
from bench.lib.tunnel_ours import env_text
from bench.lib.tunnel_stunnel import End, stunnel_program, stunnel_text
from bench.lib.tunnel_ways import Cipher


def round_of(ours: float, direct_p99: float) -> Mapping[str, Trial]:
    return {
        "our tunnel": Trial(ours * 1e6, 2 * ours * 1e6, 50, Latency(100 + ours, 300)),
        "stunnel": Trial(5e6, 8e6, 40, Latency(110, 250)),
        "direct": Trial(50e6, 80e6, 400, Latency(50, direct_p99)),
    }


def test_rates_are_medians_and_latency_is_counted_over_the_direct_one_of_the_same_round() -> None:
    rounds = [round_of(4, 60), round_of(6, 50), round_of(40, 200)]
    floods = {"our tunnel": [UnderFlood(1000 * ours, 100) for ours in (4, 6, 40)], "stunnel": [UnderFlood(9000, 800)]}
    assert rows(rounds, floods, (20, 30), (40, 10)) == [
        Row("one stream", "MB/s", 6, "stunnel", 5),
        Row("one stream", "MB/s", 6, "direct", 50),
        Row("8 streams", "MB/s", 12, "stunnel", 8),
        Row("8 streams", "MB/s", 12, "direct", 80),
        Row("new connections", "1/s", 50, "stunnel", 40),
        Row("new connections", "1/s", 50, "direct", 400),
        Row("added latency p50", "us", 56, "stunnel", 60),
        Row("added latency p99", "us", 240, "stunnel", 190),
        Row("p99 beside strangers", "us", 6000, "stunnel", 9000),
        Row("p99 beside strangers", "us", 6000, "limit", 200_000),
        Row("a stranger's hello", "us of processor", 100, "stunnel", 800),
        Row("a stranger's hello", "us of processor", 100, "limit", 200),
        Row("idle connection, destination", "KiB", 20, "stunnel", 40),
        Row("idle connection, source", "KiB", 30, "stunnel", 10),
        Row("idle connection, more expensive side", "KiB", 30, "limit", 64),
    ]


@pytest.mark.parametrize("role", [Role.SOURCE, Role.DESTINATION])
def test_our_settings_are_good_and_name_the_target_alone(role: Role, tmp_path: Path) -> None:
    path = tmp_path / "setenv.sh"
    path.touch(mode=0o600)
    path.write_text(env_text(4000, tunnel_port=4001, dns_port=4002))
    path.chmod(0o600)
    tunnel = read_settings(path, role, {}).tunnel
    assert tunnel.allowed.exact == (Target("localhost", 4000),)
    assert tunnel.server == Target("127.0.0.1", 4001)


def test_stunnel_believes_only_its_authority_and_speaks_only_our_cipher() -> None:
    text = stunnel_text(Path("ca"), Path("own"), Cipher("TLSv1.3", "TLS_AES_256_GCM_SHA384"), End(True, 1, 2))
    service = text.partition("[bench]\n")[2].splitlines()
    assert {"client = yes", "CAfile = ca", "cert = own", "verifyChain = yes"} <= set(service)
    assert {"sslVersion = TLSv1.3", "ciphersuites = TLS_AES_256_GCM_SHA384"} <= set(service)


def test_a_missing_stunnel_is_told_with_the_package_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match=r"^stunnel is missing: install Debian's package stunnel4$"):
        stunnel_program()
