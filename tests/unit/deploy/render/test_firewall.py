import re
import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.values import Settings, Side
from appliance.settings.variables import TABLE
from deploy.render.compose import DESTINATION_VM, SOURCE_VM
from deploy.render.firewall import FORMATS, ready, rules
from deploy.render.vm import bridge
from tests.support.settings import REQUIRED

NO_ROLE = Role(0)
ROLES = {Side.SOURCE: SOURCE_VM, Side.DESTINATION: DESTINATION_VM}
NAME = "kafka-orange-grape-c482e416"


def link(**changes: str) -> Settings:
    return parse(REQUIRED | changes, NO_ROLE)


LINK = link()


def opened(settings: Settings) -> list[tuple[str, str, str, str, bool]]:
    return [
        (str(rule.machine), "from" if rule.inbound else "to", rule.peer.name, rule.ports, rule.across)
        for rule in rules(settings)
    ]


def test_the_destination_vm_dials_the_source_vm_and_each_vm_its_own_brokers() -> None:
    assert opened(link(SOURCE_BROKER_PATTERN="*.orange.example:9094")) == [
        ("source", "from", "destination VM 198.51.100.9", "15060", True),
        ("destination", "to", "source VM 203.0.113.7", "15060", True),
        ("source", "to", "source brokers", "9092-9094", False),
        ("destination", "to", "destination brokers", "9092", False),
    ]


def test_nothing_comes_in_at_the_destination_vm() -> None:
    assert [rule.machine for rule in rules(link()) if rule.inbound] == [Side.SOURCE]


PAIRS = {"SOURCE_SIDE_TUNNEL_IP": "203.0.113.7,b.example", "DESTINATION_SIDE_TUNNEL_IP": "198.51.100.9,2001:db8::9"}


def test_of_several_vms_each_source_vm_lets_in_each_destination_vm_which_dials_each_of_them() -> None:
    assert opened(link(**PAIRS))[:4] == [
        ("source", "from", "destination VM 198.51.100.9", "15060", True),
        ("source", "from", "destination VM 2001:db8::9", "15060", True),
        ("destination", "to", "source VM 203.0.113.7", "15060", True),
        ("destination", "to", "source VM b.example", "15060", True),
    ]
    names = [rule.name for rule in rules(link(**PAIRS))]
    assert len(names) == len({*names})
    printed = ready("nftables", link(**PAIRS), Side.SOURCE)
    assert "define destination_vm = 198.51.100.9/32" in printed
    assert "define destination_vm_2 = 2001:db8::9/128" in printed
    assert printed.count("tcp dport 15060 drop") == 1
    assert "source_vm_2='CIDR_OF_SOURCE_VM_2'" in ready("gcloud", link(**PAIRS), Side.SOURCE)


def test_each_source_vms_own_sshd_and_each_bastion_has_a_rule() -> None:
    own = link(**PAIRS, TUNNEL_SSH="ann@203.0.113.7:22,ann@b.example:2222")
    assert [each for each in opened(own) if each[0] == "destination"][:2] == [
        ("destination", "to", "source VM 203.0.113.7", "22", True),
        ("destination", "to", "source VM b.example", "2222", True),
    ]
    bastions = link(**PAIRS, TUNNEL_SSH="ann@192.0.2.22:22,ann@192.0.2.23:22")
    assert opened(bastions)[:4] == [
        ("source", "from", "bastion 192.0.2.22", "15060", True),
        ("destination", "to", "bastion 192.0.2.22", "22", True),
        ("source", "from", "bastion 192.0.2.23", "15060", True),
        ("destination", "to", "bastion 192.0.2.23", "22", True),
    ]
    assert len(opened(link(**PAIRS, TUNNEL_SSH="ann@192.0.2.22:22"))) == 4


BASTION = {"TUNNEL_SSH": "ann@192.0.2.22:22"}


def test_where_there_is_a_bastion_the_source_vm_lets_in_the_bastion_and_the_destination_vm_dials_it() -> None:
    # Case 10: before, the rules were those of VMs that reach each other directly.
    assert opened(link(**BASTION))[:2] == [
        ("source", "from", "bastion", "15060", True),
        ("destination", "to", "bastion 192.0.2.22", "22", True),
    ]
    assert "\ndefine bastion = 192.0.2.22/32\n" in ready("nftables", link(**BASTION), Side.DESTINATION)
    assert ready("nftables", link(**BASTION), Side.SOURCE).count("CIDR_OF_THE_BASTION_INSIDE") == 1


@pytest.mark.parametrize("address", ["203.0.113.7", "127.0.0.1"])
def test_where_the_source_vms_own_sshd_carries_the_tunnel_only_port_22_is_opened(address: str) -> None:
    settings = link(TUNNEL_SSH="ann@203.0.113.7:22", SOURCE_SIDE_TUNNEL_IP=address)
    assert opened(settings)[:2] == [
        ("source", "from", "destination VM 198.51.100.9", "22", True),
        ("destination", "to", "source VM 203.0.113.7", "22", True),
    ]
    for form in FORMATS:
        assert "15060" not in ready(form, settings, Side.SOURCE)
    # Docker then publishes no port to others, and other users of SSH must not be locked out.
    assert not re.search(r"tcp dport .* drop\n", ready("nftables", settings, Side.SOURCE))


def test_every_rule_has_a_name_of_its_own_even_when_all_ports_are_one() -> None:
    same = link(SOURCE_BROKER_SERVERS="b0.orange.example:9092", TUNNEL_PORT="9092")
    assert len({rule.name for rule in rules(same)}) == len(rules(same)) == 4


@pytest.mark.parametrize("form", FORMATS)
def test_a_value_that_only_the_user_knows_is_a_blank_in_capitals_that_is_set_once(form: str) -> None:
    text = ready(form, link(SOURCE_SIDE_TUNNEL_IP="vm.orange.example"), Side.DESTINATION)
    assert text.count("CIDR_OF_SOURCE_VM") == 1
    assert text.count("CIDR_OF_DESTINATION_BROKERS") == 1
    assert "vm.orange.example" not in text
    assert text.index("CIDR_OF_SOURCE_VM") < text.index("15060")


@pytest.mark.parametrize("form", FORMATS)
def test_no_secret_is_in_the_commands(form: str) -> None:
    secrets = [REQUIRED[variable.name] for variable in TABLE if variable.confidential and variable.required]
    for machine in Side:
        assert not [secret for secret in secrets if secret in ready(form, link(), machine)]


def test_gcloud_lets_the_destination_vm_in_at_the_source_vm() -> None:
    commands = shlex.split(ready("gcloud", link(), Side.SOURCE).replace("\\\n", ""), comments=True)
    assert "destination_vm=198.51.100.9/32" in commands
    first = commands[commands.index("gcloud") :][:13]
    assert first[3:5] == ["create", f"{NAME}-source-from-vm-15060"]
    assert {"--direction=INGRESS", "--rules=tcp:15060", "--source-ranges=$destination_vm"} <= set(first)
    assert "--network=$source_network" in first


def test_aws_has_a_call_for_each_rule_and_the_word_of_each_version_of_ip() -> None:
    text = ready("aws", link(DESTINATION_SIDE_TUNNEL_IP="2001:db8::9"), Side.SOURCE)
    commands = shlex.split(text, comments=True)
    assert commands.count("authorize-security-group-ingress") == 1
    assert commands.count("authorize-security-group-egress") == 3
    assert "destination_vm=2001:db8::9/128" in commands
    assert [word for word in commands if "Ipv6Ranges=[{CidrIpv6=$destination_vm," in word]
    assert [word for word in commands if "IpRanges=[{CidrIp=$source_vm," in word]


@pytest.mark.parametrize("machine", Side)
def test_nftables_has_the_rules_of_the_vm_it_is_for(machine: Side) -> None:
    text = ready("nftables", link(), machine)
    accepted = set(re.findall(r"^\t\tip (.*) accept", text, re.MULTILINE))
    assert (
        accepted
        == {
            Side.SOURCE: {
                "saddr $destination_vm tcp dport 15060",
                "daddr $source_brokers tcp dport 9092-9093",
            },
            Side.DESTINATION: {"daddr $source_vm tcp dport 15060", "daddr $destination_brokers tcp dport 9092"},
        }[machine]
    )
    assert ("tcp dport 15060 drop\n" in text) is (machine is Side.SOURCE)
    assert f'iifname != "{bridge(LINK.tunnel.link, ROLES[machine])}"' in text


@pytest.mark.parametrize(("peer", "family"), [("198.51.100.9", "ip"), ("2001:db8::9", "ip6")])
def test_nftables_turns_all_but_the_peer_away_from_the_tunnel_by_both_versions_of_ip(peer: str, family: str) -> None:
    text = ready("nftables", link(DESTINATION_SIDE_TUNNEL_IP=peer), Side.SOURCE)
    assert text.count("tcp dport 15060 drop\n") == 1
    assert (
        f"\t\tfib daddr type local {family} saddr $destination_vm tcp dport 15060 accept\n"
        "\t\tfib daddr type local tcp dport 15060 drop\n"
    ) in text


def test_terraform_has_each_rule_for_both_clouds() -> None:
    resources = re.findall(r'^resource "(\w+)" "([\w-]+)" {$', ready("terraform", link(), Side.SOURCE), re.MULTILINE)
    names = [f"{NAME}-{rule.name}" for rule in rules(link())]
    assert sorted(name for kind, name in resources if kind == "google_compute_firewall") == sorted(names)
    assert sorted(name for kind, name in resources if kind.startswith("aws_vpc_security_group_")) == sorted(names)


@given(st.from_regex(r"[a-zA-Z0-9._-]{1,100}", fullmatch=True))
def test_a_rules_name_is_one_that_every_cloud_takes(cluster_id: str) -> None:
    source = replace(LINK.source, cluster_id=cluster_id)
    destination = replace(LINK.destination, cluster_id=f"{cluster_id[:99]}2")
    text = ready("gcloud", replace(LINK, source=source, destination=destination), Side.SOURCE)
    for name in re.findall(r"firewall-rules create (\S+)", text):
        assert re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])", name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("orange" * 9 + "1", "grape"), ("orange" * 9 + "2", "grape")),
        (("a-b", "c"), ("a", "b-c")),
        (("o_r", "grape"), ("o.r", "grape")),
        (("Orange", "grape"), ("orange", "grape")),
        (("_", "."), (".", "_")),
    ],
)
@pytest.mark.parametrize(
    ("form", "names"), [("gcloud", r"rules create (\S+)"), ("nftables", r"delete table inet (\S+)")]
)
def test_two_links_have_no_rule_and_no_table_of_one_name(
    form: str, names: str, one: tuple[str, str], other: tuple[str, str]
) -> None:
    first, second = (
        set(re.findall(names, ready(form, link(SOURCE_CLUSTER_ID=ids[0], DESTINATION_CLUSTER_ID=ids[1]), Side.SOURCE)))
        for ids in (one, other)
    )
    assert first
    assert second
    assert not first & second


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("gcloud", ["--rules=tcp:9092 ", "--rules=tcp:9193-9195 "]),
        ("aws", ["FromPort=9092,ToPort=9092,", "FromPort=9193,ToPort=9195,"]),
        ("nftables", ["dport 9092 ", "dport 9193-9195 "]),
        ("terraform", ['["9092"]', '["9193-9195"]', "= 9193\n  to_port           = 9195\n"]),
    ],
)
def test_case_27_every_port_of_a_pattern_is_in_the_rules(form: str, words: list[str]) -> None:
    """Before, only the first port of a range was opened."""
    brokers = "b0.orange.example:9092,b1.orange.example:9194"
    settings = link(SOURCE_BROKER_SERVERS=brokers, SOURCE_BROKER_PATTERN="*.orange.example:9193-9195")
    text = ready(form, settings, Side.SOURCE)
    assert [word for word in words if word in text] == words
