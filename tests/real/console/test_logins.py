"""Logins at a provider, over real connections: the whole way, and each token and answer that is refused."""

import html
import time
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
import pytest
from joserfc.jwk import RSAKey
from yarl import URL

from appliance.console.access import Right
from appliance.console.login import right_of
from appliance.errors import SettingsError
from tests.support.console import of_size, shown
from tests.support.facts import settings
from tests.support.provider import CLIENT, CLIENT_SECRET, Provider, provider, secret_key

OWN = "/links/orange-grape/"
HTML = {"Accept": "text/html"}


def variables(of: str, **more: str) -> dict[str, str]:
    own = {"ISSUER": of, "CLIENT_ID": CLIENT, "CLIENT_SECRET": CLIENT_SECRET, "OPERATORS": "operators"} | more
    return {f"CONSOLE_OIDC_{name}": value for name, value in own.items()}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    text: str
    url: URL


async def asked(session: aiohttp.ClientSession, address: str, follow: bool = True) -> Answer:
    async with session.get(address, headers=HTML, allow_redirects=follow) as answer:
        return Answer(answer.status, await answer.text(), answer.url)


def browser() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


async def test_a_login_leads_back_to_the_wanted_page_with_the_right_of_the_group() -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address, browser() as user:
        answer = await asked(user, f"http://{address}{OWN}actions?x=1")
        assert answer.status == 200
        assert f'content="0; url={OWN}actions?x=1"' in answer.text
        assert own.asked[0]["code_challenge_method"] == "S256"
        assert "actions/pause" in (await asked(user, f"http://{address}{OWN}actions")).text
        async with user.post(f"http://{address}{OWN}session/end") as ended:
            assert "The session has ended here" in await ended.text()
        assert (await asked(user, f"http://{address}{OWN}topics", follow=False)).status == 303


async def test_without_a_session_a_browser_is_sent_to_the_login_and_a_program_refused() -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address, browser() as user:
        for page, login in (("/", f"{OWN}overview"), (OWN, f"{OWN}login?to=%2Flinks%2Forange-grape%2F")):
            async with user.get(f"http://{address}{page}", headers=HTML, allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (303, login)
        for page in ("/", OWN, "/connectors", "/metrics", f"{OWN}history.json"):
            async with user.get(f"http://{address}{page}", allow_redirects=False) as answer:
                assert answer.status == 401
        async with user.get(f"http://{address}/health") as answer:
            assert (answer.status, await answer.text()) == (200, "")


WRONG: dict[str, Callable[[Provider], object]] = {
    "another audience": lambda own: own.claims.update(aud="another"),
    "one audience more, for which it was issued": lambda own: own.claims.update(aud=[CLIENT, "x"], azp="x"),
    "another issuer": lambda own: own.claims.update(iss="https://evil.example"),
    "another nonce": lambda own: own.claims.update(nonce="another"),
    "no nonce": lambda own: own.claims.update(nonce=None),
    "no end": lambda own: own.claims.update(exp=None),
    "an end that has passed": lambda own: own.claims.update(exp=int(time.time()) - 600),
    "no subject": lambda own: own.claims.update(sub=None),
    "another's key": lambda own: setattr(own, "signing", RSAKey.generate_key(2048, {"kid": "1"})),
    "no signature": lambda own: own.header.update(alg="none"),
    "no signature, which is offered": lambda own: (
        own.header.update(alg="none"),
        own.metadata.update(id_token_signing_alg_values_supported=["none"]),
    ),
    "the client's secret as the key": lambda own: (
        own.header.update(alg="HS256"),
        setattr(own, "signing", secret_key()),
        own.metadata.update(id_token_signing_alg_values_supported=["HS256", "RS256"]),
    ),
    "a refused code": lambda own: setattr(own, "status", 400),
    "a broken endpoint": lambda own: setattr(own, "status", 500),
}


REASONS = {
    "another audience": "Invalid claim: 'aud'",
    "one audience more, for which it was issued": "Invalid claim: 'azp'",
    "another issuer": "Invalid claim: 'iss'",
    "another nonce": "Invalid claim: 'nonce'",
    "no nonce": "Missing claim: 'nonce'",
    "no end": "Missing claim: 'exp'",
    "an end that has passed": "expired_token",
    "no subject": "Missing claim: 'sub'",
    "another's key": "bad_signature",
    "no signature": "'none' is not allowed",
    "no signature, which is offered": "'none' is not allowed",
    "the client's secret as the key": "'HS256' is not allowed",
    "a refused code": "OAuthError",
    "a broken endpoint": "HTTPStatusError",
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_case_1051_a_token_that_is_not_for_this_login_begins_no_session(wrong: str) -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address, browser() as user:
        WRONG[wrong](own)
        answer = await asked(user, f"http://{address}{OWN}topics")
        assert answer.status == (502 if wrong == "a broken endpoint" else 403)
        assert REASONS[wrong] in html.unescape(answer.text)
        assert not [each for each in user.cookie_jar if each.key.startswith("session-")]


async def test_case_1051_a_code_is_taken_only_from_the_browser_that_began_the_login_and_once() -> None:
    async with (
        provider() as own,
        shown(of_size({"orders": 2}), **variables(own.issuer)) as address,
        browser() as user,
        browser() as victim,
    ):
        async with user.get(f"http://{address}{OWN}login", allow_redirects=False) as begun:
            sent = URL(begun.headers["Location"])
        async with user.get(sent, allow_redirects=False) as logged_in:
            back = logged_in.headers["Location"]
        assert (await asked(victim, back)).status == 403, "a login that another began"
        async with victim.get(f"http://{address}{OWN}login", allow_redirects=False):
            pass
        assert (await asked(victim, back)).status == 403, "with the state of another"
        assert (await asked(user, back)).status == 200
        assert (await asked(user, back)).status == 403, "a second time"


async def test_case_1051_a_login_leads_to_no_other_site() -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address:
        for wanted in ("https://evil.example/", "//evil.example", "/\\evil.example", f"{OWN}x\n", "javascript:x", ""):
            async with browser() as user:
                answer = await asked(user, str(URL(f"http://{address}{OWN}login").with_query(to=wanted)))
                assert f'content="0; url={OWN}"' in answer.text


async def test_metadata_change_no_option_of_the_connection() -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address, browser() as user:
        own.metadata |= {"verify": False, "timeout": 0.0, "client_id": "x", "jwks": {"keys": []}}
        assert (await asked(user, f"http://{address}{OWN}topics")).status == 200


async def test_a_claim_that_the_token_lacks_is_asked_for_and_taken_of_the_same_user_alone() -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address:
        own.claims["groups"] = None
        for subject, status in (("1", 200), ("2", 403)):
            own.userinfo = {"sub": subject, "groups": ["operators"]}
            async with browser() as user:
                assert (await asked(user, f"http://{address}{OWN}topics")).status == status


async def test_a_provider_that_does_not_answer_is_said() -> None:
    async with shown(of_size({"orders": 2}), **variables("http://127.0.0.1:1")) as address, browser() as user:
        answer = await asked(user, f"http://{address}{OWN}topics")
        assert answer.status == 502
        assert "CONSOLE_OIDC_ISSUER=http://127.0.0.1:1: no provider answers: ConnectError" in answer.text


@pytest.mark.parametrize(
    ("claims", "right"),
    [
        ({"groups": ["x", "operators"]}, Right.OPERATOR),
        ({"groups": "operators"}, Right.OPERATOR),
        ({"groups": ["viewers"]}, Right.VIEWER),
        ({"groups": ["operators-too", {"a": 1}, None, 7]}, Right.NONE),
        ({"groups": {"operators": 1}}, Right.NONE),
        ({}, Right.NONE),
    ],
)
def test_the_right_is_that_of_the_claims_values(claims: dict[str, object], right: Right) -> None:
    own = settings(**variables("https://id.example", VIEWERS="viewers")).control_center.login
    assert right_of(claims, own) is right


def test_a_star_lets_every_user_read_and_nobody_command() -> None:
    own = settings(**variables("https://id.example", OPERATORS="", VIEWERS="*")).control_center.login
    assert right_of({}, own) is Right.VIEWER


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"CLIENT_ID": ""}, "CONSOLE_OIDC_CLIENT_ID: required with CONSOLE_OIDC_ISSUER"),
        ({"OPERATORS": ""}, "expected one of them, or nobody may log in"),
        ({"OPERATORS": "*"}, "each user of the provider would command"),
        ({"ISSUER": ""}, "CONSOLE_OIDC_ISSUER: required with the other"),
        ({"ISSUER": "http://id.example"}, "expected an https URL without a query"),
        ({"ISSUER": "https://me:secret@id.example"}, "expected an? .*URL"),
        ({"SCOPE": "profile"}, "expected scopes with openid among them"),
        ({"CA_FILE": "/nowhere.pem"}, "CONSOLE_OIDC_CA_FILE=/nowhere.pem: no such file"),
    ],
)
def test_settings_of_a_login_that_cannot_be_are_refused(changed: dict[str, str], fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        settings(**variables("https://id.example", **changed))
