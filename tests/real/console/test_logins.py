"""Logins at a provider, over real connections: the whole way, and each token and answer that is refused."""

import asyncio
import contextlib
import html
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from unittest.mock import ANY

import aiohttp
import pytest
from joserfc.jwk import RSAKey
from yarl import URL

from appliance.console.access import Access, Right
from appliance.console.login import right_of
from appliance.errors import SettingsError
from tests.support.console import of_size, shown
from tests.support.facts import settings
from tests.support.provider import CLIENT, CLIENT_SECRET, Provider, provider, secret_key

OWN = "/links/orange-grape/"
HTML = {"Accept": "text/html"}
NO_HEADERS: Mapping[str, str] = {}


def variables(of: str, **more: str) -> dict[str, str]:
    own = {"ISSUER": of, "CLIENT_ID": CLIENT, "CLIENT_SECRET": CLIENT_SECRET, "OPERATORS": "operators"} | more
    return {f"CONSOLE_OIDC_{name}": value for name, value in own.items()}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    text: str
    location: str


@dataclass(frozen=True, slots=True)
class Browser:
    """A browser with cookies of its own; its addresses are relative to the link's page."""

    page: URL
    session: aiohttp.ClientSession

    async def get(self, at: str = "", follow: bool = True, **headers: str) -> Answer:
        return await self.ask("GET", at, follow, headers=HTML | headers)

    async def ask(self, method: str, at: str, follow: bool = True, headers: Mapping[str, str] = NO_HEADERS) -> Answer:
        url = self.page.join(URL(at))
        async with self.session.request(method, url, headers=headers, allow_redirects=follow) as answer:
            return Answer(answer.status, await answer.text(), answer.headers.get("Location", ""))

    def session_cookie(self) -> str:
        """The session's key; empty without a session."""
        return next((each.value for each in self.session.cookie_jar if each.key.startswith("session-")), "")


@contextlib.asynccontextmanager
async def browser(address: str) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield Browser(URL(f"http://{address}{OWN}"), session)


@contextlib.asynccontextmanager
async def center(issuer: str) -> AsyncIterator[str]:
    """The address of a control center with logins at this provider."""
    async with shown(of_size({"orders": 2}), **variables(issuer)) as address:
        yield address


@contextlib.asynccontextmanager
async def logins() -> AsyncIterator[tuple[Provider, Browser]]:
    """A provider, and a browser at a control center with logins there."""
    async with provider() as own, center(own.issuer) as address, browser(address) as user:
        yield own, user


async def test_a_login_leads_back_to_the_wanted_page_with_the_right_of_the_group() -> None:
    async with logins() as (own, user):
        answer = await user.get("actions?x=1")
        assert answer.status == 200
        assert f'content="0; url={OWN}actions?x=1"' in answer.text
        assert own.asked[0]["code_challenge_method"] == "S256"
        assert "actions/pause" in (await user.get("actions")).text
        assert "The session has ended here" in (await user.ask("POST", "session/end")).text
        assert (await user.get("topics", follow=False)).status == 303


async def test_without_a_session_a_browser_is_sent_to_the_login_and_a_program_refused() -> None:
    async with logins() as (_, user):
        for page, login in (("/", f"{OWN}overview"), (OWN, f"{OWN}login?to=%2Flinks%2Forange-grape%2F")):
            assert await user.get(page, follow=False) == Answer(303, ANY, login)
        for page in ("/", OWN, "/connectors", "/metrics", "history.json"):
            assert (await user.ask("GET", page, follow=False)).status == 401
        assert await user.ask("GET", "/health") == Answer(200, "", "")


WRONG: dict[str, tuple[Callable[[Provider], object], str]] = {
    "another audience": (lambda own: own.claims.update(aud="another"), "invalid_claim: aud"),
    "one audience more, for which it was issued": (
        lambda own: own.claims.update(aud=[CLIENT, "x"], azp="x"),
        "invalid_claim: azp",
    ),
    "another issuer": (lambda own: own.claims.update(iss="https://evil.example"), "invalid_claim: iss"),
    "another nonce": (lambda own: own.claims.update(nonce="another"), "invalid_claim: nonce"),
    "no nonce": (lambda own: own.claims.update(nonce=None), "missing_claim: nonce"),
    "no end": (lambda own: own.claims.update(exp=None), "missing_claim: exp"),
    "an end that has passed": (lambda own: own.claims.update(exp=int(time.time()) - 600), "expired_token: exp"),
    "no subject": (lambda own: own.claims.update(sub=None), "missing_claim: sub"),
    "another's key": (
        lambda own: setattr(own, "signing", RSAKey.generate_key(2048, {"kid": "1"})),
        "BadSignatureError",
    ),
    "no signature": (lambda own: own.header.update(alg="none"), "UnsupportedAlgorithmError"),
    "no signature, which is offered": (
        lambda own: (
            own.header.update(alg="none"),
            own.metadata.update(id_token_signing_alg_values_supported=["none"]),
        ),
        "UnsupportedAlgorithmError",
    ),
    "the client's secret as the key": (
        lambda own: (
            own.header.update(alg="HS256"),
            setattr(own, "signing", secret_key()),
            own.metadata.update(id_token_signing_alg_values_supported=["HS256", "RS256"]),
        ),
        "UnsupportedAlgorithmError",
    ),
    "a refused code": (lambda own: setattr(own, "status", 400), "refuses the login: invalid_grant"),
    "a broken endpoint": (lambda own: setattr(own, "status", 500), "no answer: HTTPStatusError"),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_case_1051_a_token_that_is_not_for_this_login_begins_no_session(wrong: str) -> None:
    async with logins() as (own, user):
        spoil, reason = WRONG[wrong]
        spoil(own)
        answer = await user.get("topics")
        assert answer.status == (502 if wrong == "a broken endpoint" else 403)
        assert reason in html.unescape(answer.text)
        assert not user.session_cookie()


async def test_case_1051_a_code_is_taken_only_from_the_browser_that_began_the_login_and_once() -> None:
    async with provider() as own, center(own.issuer) as address, browser(address) as user, browser(address) as victim:
        back = (await user.get((await user.get("login", follow=False)).location, follow=False)).location
        assert (await victim.get(back)).status == 403, "a login that another began"
        state = URL((await victim.get("login", follow=False)).location).query["state"]
        stolen = URL(back).with_query(code=URL(back).query["code"], state=state)
        assert (await victim.get(str(stolen))).status == 403, "a code of another login: the nonce differs"
        assert (await user.get(back)).status == 200
        assert (await user.get(back)).status == 403, "a second time"


async def test_case_1053_a_cookie_that_is_no_text_is_no_login() -> None:
    async with provider() as own, center(own.issuer) as address:
        host, _, port = address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        path = f"{OWN}login/answer?state=abcdefgh&code=1"
        head = f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nCookie: login-orange-grape-abcdefgh="
        writer.write(head.encode() + b"\xff\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 403 ")
        writer.close()


async def test_case_1052_two_tabs_log_in_at_once() -> None:
    async with logins() as (_, user):
        sent = [(await user.get("login", follow=False)).location for _ in range(2)]
        assert [(await user.get(each)).status for each in sent] == [200, 200]


async def test_case_1052_strangers_who_begin_logins_keep_nobody_out_and_ask_the_provider_nothing() -> None:
    async with provider() as own, center(own.issuer) as address, browser(address) as user:
        sent = (await user.get("login", follow=False)).location
        for _ in range(300):
            async with browser(address) as stranger:
                assert (await stranger.get("login", follow=False)).status == 303
        assert own.configured == 1
        assert (await user.get(sent)).status == 200


async def test_case_1052_a_page_of_another_site_begins_no_login() -> None:
    async with logins() as (_, user):
        picture = {"Sec-Fetch-Dest": "image", "Sec-Fetch-Site": "cross-site"}
        assert (await user.ask("GET", "login", follow=False, headers=picture)).status == 403


async def test_case_1052_an_open_page_without_a_session_begins_no_login() -> None:
    async with logins() as (own, user):
        answer = await user.get("topics", follow=False, **{"X-Part": "live"})
        assert (answer.status, own.configured) == (401, 0)


async def test_case_1052_without_a_provider_there_is_no_login() -> None:
    viewer = {"CONSOLE_VIEWER_TOKEN": "Rk8sQw2nLx6vBt1yHc5mJd9gFp3zTe7U"}
    async with shown(of_size({"orders": 2}), **viewer) as address, browser(address) as user:
        assert [(await user.get(page)).status for page in ("login", "login/answer")] == [401, 401]


async def test_case_1052_a_refused_user_has_no_session_of_another_left() -> None:
    async with logins() as (own, user):
        assert (await user.get("topics")).status == 200
        own.claims["groups"] = []
        assert (await user.get("login")).status == 403
        assert (await user.get("topics", follow=False)).status == 303


async def test_case_1052_a_session_of_the_page_commands_nothing_elsewhere() -> None:
    async with logins() as (_, user):
        assert (await user.get("topics")).status == 200
        cookie = {"Cookie": f"session-orange-grape={user.session_cookie()}"}
        assert (await user.ask("PUT", "/connectors/replicator-orange/pause", headers=cookie)).status == 401


@pytest.mark.parametrize("name", ["", "\u200b\u202e", None])
async def test_case_1052_a_user_without_a_name_that_prints_is_called_by_the_providers_own(name: str | None) -> None:
    async with logins() as (own, user):
        own.claims["preferred_username"] = name
        assert "1 has logged in." in (await user.get("topics")).text


async def test_a_provider_that_names_itself_otherwise_is_said() -> None:
    async with provider() as own, center(f"{own.issuer}/") as address, browser(address) as user:
        answer = await user.get("topics")
        assert answer.status == 502
        assert "give the URL as it does" in answer.text


def test_case_1052_a_user_ends_no_session_of_a_higher_right() -> None:
    access = Access({}, lambda: 0.0)
    operator = access.begin(Right.OPERATOR, "alice")
    viewers = [access.begin(Right.VIEWER, f"bob {number}") for number in range(300)]
    assert access.in_session(operator) is Right.OPERATOR
    assert access.in_session(viewers[0]) is Right.NONE
    own = [access.begin(Right.VIEWER, "carol") for _ in range(20)]
    assert [access.in_session(each) for each in own] == [Right.NONE] * 12 + [Right.VIEWER] * 8


async def test_case_1051_a_login_leads_to_no_other_site() -> None:
    async with provider() as own, center(own.issuer) as address:
        for path in ("https://evil.example/", "//evil.example", "/\\evil.example", f"{OWN}x\n", "javascript:x", ""):
            async with browser(address) as user:
                answer = await user.get(str(URL("login").with_query(to=path)))
                assert f'content="0; url={OWN}"' in answer.text


async def test_metadata_change_no_option_of_the_connection() -> None:
    async with logins() as (own, user):
        own.metadata |= {"verify": False, "timeout": 0.0, "client_id": "x", "jwks": {"keys": []}}
        assert (await user.get("topics")).status == 200


async def test_a_claim_that_the_token_lacks_is_asked_for_and_taken_of_the_same_user_alone() -> None:
    async with provider() as own, center(own.issuer) as address:
        own.claims["groups"] = None
        for subject, status in (("1", 200), ("2", 403)):
            own.userinfo = {"sub": subject, "groups": ["operators"]}
            async with browser(address) as user:
                assert (await user.get("topics")).status == status


async def test_a_provider_that_does_not_answer_is_said() -> None:
    async with center("http://127.0.0.1:1") as address, browser(address) as user:
        answer = await user.get("topics")
        assert answer.status == 502
        assert "CONSOLE_OIDC_ISSUER=http://127.0.0.1:1: no answer: ConnectError" in answer.text


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
        ({"CA_FILE": "/nowhere.pem"}, "CONSOLE_OIDC_CA_FILE=/nowhere.pem: expected a readable PEM file"),
        ({"CA_FILE": __file__}, "CONSOLE_OIDC_CA_FILE=.*: expected"),
        (
            {"ISSUER": "", "CLIENT_ID": "", "OPERATORS": "", "CA_FILE": __file__},
            "required with the other",
        ),
        ({"ISSUER": "https://id.example:99999999"}, "expected an https URL"),
        ({"ISSUER": "https:///x"}, "expected an https URL"),
        ({"ISSUER": "https://id.example/.well-known/openid-configuration"}, "expected an https URL"),
        ({"OPERATORS": "operators,"}, "CONSOLE_OIDC_OPERATORS=operators,: expected values"),
    ],
)
def test_settings_of_a_login_that_cannot_be_are_refused(changed: dict[str, str], fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        settings(**variables("https://id.example", **changed))


def test_case_1055_a_viewer_with_an_operators_name_ends_no_session_of_theirs() -> None:
    access = Access({}, lambda: 0.0)
    operator = access.begin(Right.OPERATOR, "alice")
    for _ in range(300):
        access.begin(Right.VIEWER, "alice")
    assert access.in_session(operator) is Right.OPERATOR
