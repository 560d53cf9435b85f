import pytest

from appliance.settings.target import AllowedTargets, Login, Target, TargetPattern, user_name


@pytest.mark.parametrize("text", ["*.orange.example:9092", "*.orange.example:9092-9098", "*.or-ange.example:1-1000"])
def test_a_pattern_reads_as_it_is_written(text: str) -> None:
    assert str(TargetPattern.parse(text)) == text


def test_a_range_of_one_port_is_that_port() -> None:
    assert TargetPattern.parse("*.orange.example:9092-9092") == TargetPattern("orange.example", 9092)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orange.example:9092", r"expected \*.domain:port"),
        ("*.orange.example", "expected host:port"),
        ("*.example:9092", "at least two labels"),
        ("*.10.0.0.1:9092", "at least two labels"),
        ("*.orange.example:9098-9092", "from low to high"),
        ("*.orange.example:1-1001", "1000 at most"),
        ("*.orange.example:9092-", "expected a port"),
        ("*.orange.example:-9092", "expected a port"),
        ("*.orange.example:9092-9093-9094", "expected a port"),
    ],
)
def test_an_illegal_pattern_is_refused_with_the_expected_form(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        TargetPattern.parse(text)


def test_a_range_allows_its_ports_and_no_other() -> None:
    allowed = AllowedTargets((), (TargetPattern.parse("*.orange.example:9092-9094"),))
    asked = {port: allowed.allows(Target("b7.orange.example", port)) for port in range(9091, 9096)}
    assert asked == {9091: False, 9092: True, 9093: True, 9094: True, 9095: False}
    assert allowed.ports_of("b7.orange.example") == (9092, 9093, 9094)
    assert allowed.ports_of("b7.grape.example") == ()


@pytest.mark.parametrize(
    "host", ["433.34.23.45", "1.2.3", "10.0.0.256", "10.0.0.1.2", "010.0.0.1", "7", "0x7f.1", "127.0x1", "b0.orange.0x"]
)
def test_a_host_that_ends_in_a_number_is_an_address_or_nothing(host: str) -> None:
    with pytest.raises(ValueError, match="expected host:port: a host that ends in a number is an IP address"):
        Target.parse(f"{host}:9092")


@pytest.mark.parametrize(
    "host", ["10.0.0.25", "3com.example", "b0.7up", "10-0-0-1.ec2.internal", "2.b0.orange", "x0x1"]
)
def test_digits_elsewhere_in_a_name_do_no_harm(host: str) -> None:
    assert Target.parse(f"{host}:9092").host == host


@pytest.mark.parametrize(
    ("text", "login"),
    [
        ("ubuntu@bastion.example:22", Login("ubuntu", Target("bastion.example", 22))),
        ("ec2-user@203.0.113.7:2222", Login("ec2-user", Target("203.0.113.7", 2222))),
        ("tunnel@[2001:db8::7]:22", Login("tunnel", Target("2001:db8::7", 22))),
    ],
)
def test_a_login_is_a_user_at_a_server(text: str, login: Login) -> None:
    assert Login.parse(text) == login
    assert str(login) == text


@pytest.mark.parametrize("text", ["", "bastion.example:22", "@bastion.example:22", "a b@c:22", "ubuntu@c", "-o@c:22"])
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected user@host:port$"):
        Login.parse(text)


@pytest.mark.parametrize("text", ["-oProxyCommand", "a b", "a@b", "é", "x" * 65])
def test_a_user_name_needs_no_quoting(text: str) -> None:
    with pytest.raises(ValueError, match="expected a user name"):
        user_name(text)
