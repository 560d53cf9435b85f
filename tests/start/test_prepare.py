"""The two prepare scripts as processes, each in a new copy of the checkout, as Git would clone it."""

import os
import re
import socket
import stat
from pathlib import Path

import pytest
import yaml

from deploy.prepare.vm import container_user
from deploy.render.firewall import FORMATS
from tests.start.folder import ADDRESS, DESTINATION, SOURCE, Link
from tests.support.order import ADDRESSES, ORDER
from tests.support.settings import DIRECT, SECRET


@pytest.fixture
def order(tmp_path: Path, cache: Path, port: str) -> Link:
    settings = {"TUNNEL_LISTEN": ADDRESS, "TUNNEL_PORT": port, "GLOBAL_CLUSTER": "us-east.1"}
    return Link(tmp_path / "replicator-order", cache, settings, ORDER)


def rows(output: str) -> list[list[str]]:
    """The rows of the firewall's table, as words."""
    table = output.partition("Firewall rules\n")[2].partition("\n\n")[0]
    return [re.split(r"  +", line.strip()) for line in table.splitlines()[1:]]


@pytest.mark.parametrize(
    ("script", "services"),
    [(SOURCE, {"tunnel", "doctor"}), (DESTINATION, {"gateway", "replicator", "control-center", "doctor"})],
    ids=["source", "destination"],
)
def test_from_a_clone_to_the_next_command_and_again_without_a_change(
    link: Link, script: str, services: set[str]
) -> None:
    code, out, err = link.run(script)
    assert code == 0, err
    assert re.search(r"^Next\n  docker[- ]compose up -d$", out, re.MULTILINE)

    files = link.files()
    document = yaml.safe_load(files["prepared/docker-compose.yml"])
    assert set(document["services"]) == services
    for service in document["services"].values():
        mounted = [volume["source"] for volume in service["volumes"] if volume["type"] == "bind"]
        assert all((link.folder / path).is_file() for path in mounted)
        assert service["user"].partition(":")[0] != "0"
    for name in services:
        status = (link.folder / "prepared" / f"{name}.sh").stat()
        assert stat.S_IMODE(status.st_mode) == 0o600
        assert document["services"][name]["user"] == f"{status.st_uid}:{status.st_gid}"

    code, out, err = link.run(script)
    assert (code, err) == (0, "")
    assert "Files: nothing has changed\n" in out
    assert link.files() == files


def test_the_firewall_table_has_the_tunnels_rule_inbound_at_the_source_vm(link: Link, port: str) -> None:
    table = {script: rows(link.run(script, "--check")[1]) for script in (SOURCE, DESTINATION)}
    inbound = ["source VM", "inbound", "destination VM 198.51.100.9", "source VM", "TCP", port, "yes"]
    outbound = ["destination VM", "outbound", "destination VM", "source VM 203.0.113.7", "TCP", port, "yes"]
    assert [row[:8] for row in table[SOURCE][:2]] == [["*", *inbound], [*outbound, table[SOURCE][1][7]]]
    assert [row[:8] for row in table[DESTINATION][:2]] == [[*inbound, table[DESTINATION][0][7]], ["*", *outbound]]


def test_a_changed_setting_is_shown_and_a_changed_secret_is_not(link: Link) -> None:
    link.run(DESTINATION)
    link.set(REPLICA_TOPICS_SOURCE_REGEX="payments", SHARED_SECRET=SECRET[::-1])

    code, out, _ = link.run(DESTINATION, "--check")
    assert code == 1
    before = link.files()
    code, again, _ = link.run(DESTINATION)
    assert code == 0
    for shown in (out, again):
        assert "+export REPLICA_TOPICS_SOURCE_REGEX='payments'\n" in shown
        assert "+export SHARED_SECRET=**** (new)\n" in shown
        assert SECRET[::-1] not in shown
    changed = {path for path, text in link.files().items() if text != before[path]}
    assert changed == {
        "prepared/docker-compose.yml",
        *(f"prepared/{name}.sh" for name in ("control-center", "doctor", "gateway", "replicator")),
    }


def test_a_check_writes_nothing_and_its_exit_code_is_1_where_a_file_would_change(link: Link) -> None:
    before = link.files()
    code, out, _ = link.run(SOURCE, "--check")
    assert (code, link.files()) == (1, before)
    assert "prepared/tunnel.sh" in out

    link.run(SOURCE)
    assert link.run(SOURCE, "--check")[0] == 0


@pytest.mark.parametrize("form", FORMATS)
def test_the_firewalls_commands_are_all_that_is_printed_and_nothing_is_written(
    link: Link, form: str, port: str
) -> None:
    before = link.files()
    code, out, err = link.run(SOURCE, "--firewall", form)
    assert (code, err, link.files()) == (0, "", before)
    assert out.startswith("#")
    assert "198.51.100.9/32" in out
    assert port in out


def test_a_reader_who_has_seen_enough_is_no_failure_to_speak_of(link: Link) -> None:
    link.run(SOURCE, "--check")
    process = link.start(SOURCE)
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait(timeout=60)
    assert link.run(SOURCE, "--check")[0] == 0


def test_every_fault_is_told_at_once_and_nothing_is_written(link: Link) -> None:
    link.set(SHARED_SECRET="hunter2", SOURCE_BROKER_SERVERS="b0.orange.example", DESTINATION_CLUSTER_ID="orange")
    (link.folder / "setenv.sh").chmod(0o644)
    before = link.files()
    code, out, err = link.run(DESTINATION)
    assert (code, out, link.files()) == (2, "", before)
    told = [re.sub(r"setenv\.sh:[0-9]+: ", "", line.removeprefix(f"bin/{DESTINATION}: ")) for line in err.splitlines()]
    assert {re.split("[=:]", line)[0] for line in told} == {
        "setenv.sh",
        "SHARED_SECRET",
        "SOURCE_BROKER_SERVERS",
        "DESTINATION_CLUSTER_ID",
    }
    assert re.search(r"made just now: export SHARED_SECRET='\S{44}'$", err, re.MULTILINE)
    assert "hunter2" not in err


def test_a_secret_that_a_shell_would_make_is_refused_and_may_be_in_a_file_instead(link: Link, tmp_path: Path) -> None:
    link.set(SHARED_SECRET="")
    text = (link.folder / "setenv.sh").read_text()
    (link.folder / "setenv.sh").write_text(
        text.replace("export SHARED_SECRET=''\n", "") + 'export SHARED_SECRET="$(cat /run/secrets/shared)"\n'
    )
    code, _, err = link.run(SOURCE)
    assert (code, err.count(f"bin/{SOURCE}: ")) == (2, 1)
    assert "SHARED_SECRET_FILE=/path" in err

    (tmp_path / "shared").touch(mode=0o600)
    (tmp_path / "shared").write_text(SECRET[::-1] + "\n")
    link.set(SHARED_SECRET="", SHARED_SECRET_FILE=str(tmp_path / "shared"))
    os.chown(tmp_path / "shared", *container_user())
    code, _, err = link.run(SOURCE)
    assert code == 0, err
    volumes = yaml.safe_load(link.files()["prepared/docker-compose.yml"])["services"]["tunnel"]["volumes"]
    assert str(tmp_path / "shared") in [volume["source"] for volume in volumes]
    assert not [path for path, text in link.files().items() if SECRET[::-1] in text]


def test_without_setenv_sh_the_command_that_makes_it_is_told(link: Link) -> None:
    (link.folder / "setenv.sh").unlink()
    code, _, err = link.run(SOURCE)
    assert (code, err.count("\n")) == (2, 1)
    assert "cp setenv.sh.template setenv.sh && chmod 600 setenv.sh" in err


def test_the_settings_may_be_elsewhere(link: Link, tmp_path: Path) -> None:
    (link.folder / "setenv.sh").rename(tmp_path / "elsewhere.sh")
    assert link.run(SOURCE, "--env-file", str(tmp_path / "elsewhere.sh"))[0] == 0


def test_two_links_and_two_directions_on_one_vm_need_only_another_tunnel_port(link: Link, port: str) -> None:
    assert link.run(SOURCE)[0] == 0
    back = {"SOURCE_CLUSTER_ID": "grape", "DESTINATION_CLUSTER_ID": "orange"}
    folder = link.folder.with_name("kafka-cloud-replicator-grape-orange")
    assert Link(folder, link.cache, back).run(DESTINATION)[0] == 0

    second = Link(
        link.folder.with_name("kafka-cloud-replicator-orange-lemon"),
        link.cache,
        {"DESTINATION_CLUSTER_ID": "lemon", "TUNNEL_LISTEN": ADDRESS, "TUNNEL_PORT": port},
    )
    code, _, err = second.run(SOURCE)
    assert code == 2
    assert f"TUNNEL_PORT: the link in {link.folder} publishes {ADDRESS}:{port} too" in err


def test_a_tunnel_port_that_another_program_has_is_refused_but_not_one_that_the_link_itself_has(
    link: Link, port: str
) -> None:
    with socket.create_server((ADDRESS, int(port))):
        code, _, err = link.run(SOURCE)
        assert (code, err.count("\n")) == (2, 1)
        assert f"TUNNEL_PORT: another program has {ADDRESS}:{port}" in err
    assert link.run(SOURCE)[0] == 0
    with socket.create_server((ADDRESS, int(port))):
        assert link.run(SOURCE)[0] == 0


def test_either_script_prepares_a_vm_of_an_order_and_prints_the_rules_of_each_pair(order: Link, port: str) -> None:
    code, out, err = order.run(SOURCE)
    assert code == 0, err
    assert out.strip().startswith("Order replicator-order, the VM beside us-east.1")
    files = order.files()
    assert set(yaml.safe_load(files["prepared/docker-compose.yml"])["services"]) == {"tunnel", "gateway", "order"}
    assert {name for name in files if name.startswith("prepared/")} == {
        *("prepared/tunnel.sh", "prepared/gateway.sh", "prepared/order.sh", "prepared/passwd"),
        "prepared/docker-compose.yml",
        "prepared/kafka-cloud-replicator-replicator-order.service",
    }
    inbound = [[cell for cell in row if cell != "*"] for row in rows(out) if "inbound" in row]
    assert {(row[0], row[2]) for row in inbound} == {
        (f"{name} VM", f"{other} VM {address}")
        for name in ADDRESSES
        for other, address in ADDRESSES.items()
        if other != name
    }
    for name, address in ADDRESSES.items():
        assert f"{name} VM {address}" in out
    assert out.count(port) >= 12
    assert "on each other VM, with the same settings but GLOBAL_CLUSTER:" in out
    assert re.search(r"the order \(/status, /metrics\): +curl http://127\.[0-9.]+:8080/health", out)

    code, again, err = order.run(DESTINATION)
    assert (code, order.files()) == (0, files), err
    assert "Files: nothing has changed" in again


@pytest.mark.parametrize("form", FORMATS)
def test_an_orders_rules_are_printed_for_each_firewall(order: Link, form: str) -> None:
    code, out, err = order.run(DESTINATION, "--firewall", form)
    assert code == 0, err
    assert all(address in out for name, address in ADDRESSES.items() if name != "us-east.1")


def test_an_order_without_a_tunnel_has_nothing_to_prepare(order: Link) -> None:
    order.set(GLOBAL_ROUTE="direct", GLOBAL_CLUSTERS=",".join(ADDRESSES))
    code, _, err = order.run(DESTINATION)
    assert code == 2
    assert "GLOBAL_ROUTE=direct: expected tunnel here; without a tunnel start bin/appliance order run" in err


@pytest.fixture
def direct(tmp_path: Path, cache: Path) -> Link:
    return Link(tmp_path / "kafka-cloud-replicator-direct", cache, {}, DIRECT)


def test_without_a_tunnel_the_destination_vm_alone_is_prepared_and_no_variable_of_a_tunnel_is_asked_for(
    direct: Link,
) -> None:
    before = direct.files()
    code, out, err = direct.run(SOURCE)
    assert (code, out, direct.files()) == (2, "", before)
    assert err.startswith(f"bin/{SOURCE}: setenv.sh:1: SOURCE_ROUTE=direct: no source VM is needed")
    code, out, err = direct.run(DESTINATION)
    assert (code, err) == (0, "")
    assert [row[1:6] for row in rows(out)[:2]] == [
        ["destination VM", "outbound", "destination VM", f"{side} brokers", "TCP"] for side in ("source", "destination")
    ]
    services = yaml.safe_load(direct.files()["prepared/docker-compose.yml"])["services"]
    assert set(services) == {"replicator", "control-center", "doctor"}
    assert "Files: nothing has changed" in direct.run(DESTINATION)[1]


def test_a_tunnels_variable_beside_a_direct_route_is_named_in_one_line_and_its_containers_are_removed(
    link: Link,
) -> None:
    assert link.run(DESTINATION)[0] == 0
    link.set(SOURCE_ROUTE="direct")
    code, out, err = link.run(DESTINATION)
    assert (code, err) == (0, "")
    (line,) = (line for line in out.splitlines() if "not used" in line)
    assert line.endswith("SHARED_SECRET, TUNNEL_PORT, TUNNEL_LISTEN")
    assert re.search(r"^Next\n  docker[- ]compose up -d --remove-orphans$", out, re.MULTILINE)
    assert not [path for path, text in link.files().items() if SECRET in text and path != "setenv.sh"]


@pytest.mark.parametrize(("first", "second"), [(SOURCE, DESTINATION), (DESTINATION, SOURCE)])
def test_case_1440_the_other_vms_script_in_a_prepared_folder_asks_before_it_writes(
    link: Link, first: str, second: str
) -> None:
    # The wrong script made the source VM a destination VM, and its tunnel ended with the next `docker-compose up -d`.
    assert link.run(first)[0] == 0
    before = link.files()
    code, out, err = link.run(second)
    assert (code, out, link.files()) == (2, "", before)
    assert "this folder is prepared as the " in err
    assert err.endswith("give --change-role if that is meant\n")
    assert link.run(second, "--check")[0] == 1
    assert link.at_a_terminal(second, "n") == 1
    assert link.files() == before
    assert link.at_a_terminal(second, "y") == 0
    assert not {"prepared/tunnel.sh", "prepared/gateway.sh"} <= set(link.files())
    code, out, err = link.run(first, "--change-role")
    assert (code, err) == (0, "")
    assert "up -d --remove-orphans" in out
    assert set(link.files()) == set(before)


def test_case_1201_all_faults_of_a_file_are_told_at_once_whichever_it_describes(link: Link, order: Link) -> None:
    # The first line with a fault hid the faults of the values, and a missing file what makes it.
    for prepared, broken in ((link, "SOURCE_BROKER_SERVERS"), (order, "ORANGE_BROKER_SERVERS")):
        prepared.set(**{broken: "nowhere"})
        file = prepared.folder / "setenv.sh"
        file.write_text(f"{file.read_text()}export LANES=$FOUR\n")
        code, _, err = prepared.run(SOURCE)
        assert code == 2
        assert f"{broken}=nowhere: expected host:port" in err
        assert "LANES" in err
