import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.migrate.model.jaas import password_login

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    "config",
    [
        f'{PLAIN} required username="u" password="p w";',
        f"{SCRAM} REQUIRED\n  username='u'\n  password = 'p w' ;\n",
        f'{SCRAM} required tokenauth="false" username=u password="p w";',
    ],
)
def test_a_login_is_found(config: str) -> None:
    login = password_login(config)
    assert (login.user, login.password.reveal()) == ("u", "p w")


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1))
def test_any_password_survives_its_quotes(password: str) -> None:
    # A backslash goes only before what has to be escaped, as in Kafka's own documents.
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    config = f'{PLAIN} required username="u" password="{quoted}";'
    assert password_login(config).password.reveal() == password


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ("", "expected one login module"),
        (f'{PLAIN} required username="u" password="secret"', "semicolon"),
        (f"{PLAIN} required username=u=v password=secret;", "expected one login module"),
        (f'{PLAIN} required username="u";', "PlainLoginModule without password"),
        (f'{PLAIN} required username="u" password="secr\\et\\n";', "a backslash in quotes"),
        ("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;", "Krb5LoginModule is not a login"),
        ("software.amazon.msk.auth.iam.IAMLoginModule required;", "IAMLoginModule is not a login"),
    ],
)
def test_other_logins_are_named_without_their_passwords(config: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault) as raised:
        password_login(config)
    assert "secret" not in str(raised.value)
