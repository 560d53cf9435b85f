import pytest

from appliance.settings.login import Login, user_name
from appliance.settings.target import Target


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
