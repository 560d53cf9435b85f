import pytest

from deploy.prepare.vm import nameservers


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
