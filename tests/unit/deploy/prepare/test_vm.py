import pytest

from deploy.prepare.vm import host_name, nameservers


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nameserver 10.0.0.2\n", ["10.0.0.2:53"]),
        ("# a comment\nsearch example\n  nameserver\t10.0.0.2  \nnameserver 10.0.0.3", ["10.0.0.2:53", "10.0.0.3:53"]),
        ("nameserver 127.0.0.53\nnameserver ::1\nnameserver 169.254.169.254\n", ["169.254.169.254:53"]),
        ("nameserver fe80::1%eth0\nnameserver fd00::2\n", ["[fd00::2]:53"]),
        ("nameserver\nnameserver nobody\noptions edns0\n", []),
        ("", []),
    ],
)
def test_the_vms_dns_servers_are_those_that_a_container_reaches(text: str, found: list[str]) -> None:
    assert [str(server) for server in nameservers(text)] == found


@pytest.mark.parametrize(
    ("own", "name"),
    [("grape-vm-2", "grape-vm-2"), ("vm.grape.example", "vm"), ("my_vm--", "my-vm"), ("é", ""), ("x" * 99, "x" * 63)],
)
def test_a_host_name_is_one_that_a_container_may_have(own: str, name: str) -> None:
    assert host_name(own) == name
