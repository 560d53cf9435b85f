"""Logins at a provider, over real connections: the whole way, and each token and answer that is refused."""

import asyncio
import html
import time
from collections.abc import Callable
from dataclasses import dataclass

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
    "another audience": "invalid_claim: aud",
    "one audience more, for which it was issued": "invalid_claim: azp",
    "another issuer": "invalid_claim: iss",
    "another nonce": "invalid_claim: nonce",
    "no nonce": "missing_claim: nonce",
    "no end": "missing_claim: exp",
    "an end that has passed": "expired_token: exp",
    "no subject": "missing_claim: sub",
    "another's key": "BadSignatureError",
    "no signature": "UnsupportedAlgorithmError",
    "no signature, which is offered": "UnsupportedAlgorithmError",
    "the client's secret as the key": "UnsupportedAlgorithmError",
    "a refused code": "refuses the login: invalid_grant",
    "a broken endpoint": "no answer: HTTPStatusError",
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
        async with victim.get(f"http://{address}{OWN}login", allow_redirects=False) as own_begun:
            state = URL(own_begun.headers["Location"]).query["state"]
        code = URL(back).query["code"]
        stolen = URL(back).with_query(code=code, state=state)
        assert (await asked(victim, str(stolen))).status == 403, "a code of another login: the nonce differs"
        assert (await asked(user, back)).status == 200
        assert (await asked(user, back)).status == 403, "a second time"


async def test_case_1053_a_cookie_that_is_no_text_is_no_login() -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address:
        host, _, port = address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        path = f"{OWN}login/answer?state=abcdefgh&code=1"
        head = f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nCookie: login-orange-grape-abcdefgh="
        writer.write(head.encode() + b"\xff\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 403 ")
        writer.close()


async def test_case_1052_two_tabs_log_in_at_once() -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address, browser() as user:
        sent = []
        for _ in range(2):
            async with user.get(f"http://{address}{OWN}login", allow_redirects=False) as begun:
                sent.append(begun.headers["Location"])
        for each in sent:
            assert (await asked(user, each)).status == 200


async def test_case_1052_strangers_who_begin_logins_keep_nobody_out_and_ask_the_provider_nothing() -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address, browser() as user:
        async with user.get(f"http://{address}{OWN}login", allow_redirects=False) as begun:
            sent = begun.headers["Location"]
        for _ in range(300):
            async with (
                aiohttp.ClientSession() as stranger,
                stranger.get(f"http://{address}{OWN}login", allow_redirects=False) as answer,
            ):
                assert answer.status == 303
        assert own.configured == 1
        assert (await asked(user, sent)).status == 200


async def test_case_1052_a_page_of_another_site_begins_no_login() -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address, browser() as user:
        picture = {"Sec-Fetch-Dest": "image", "Sec-Fetch-Site": "cross-site"}
        async with user.get(f"http://{address}{OWN}login", headers=picture, allow_redirects=False) as answer:
            assert answer.status == 403


async def test_case_1052_an_open_page_without_a_session_begins_no_login() -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address, browser() as user:
        part = HTML | {"X-Part": "live"}
        async with user.get(f"http://{address}{OWN}topics", headers=part, allow_redirects=False) as answer:
            assert (answer.status, own.configured) == (401, 0)


async def test_case_1052_without_a_provider_there_is_no_login() -> None:
    viewer = {"CONSOLE_VIEWER_TOKEN": "Rk8sQw2nLx6vBt1yHc5mJd9gFp3zTe7U"}
    async with shown(of_size({"orders": 2}), **viewer) as address, browser() as user:
        for page in ("login", "login/answer"):
            assert (await asked(user, f"http://{address}{OWN}{page}")).status == 401


async def test_case_1052_a_refused_user_has_no_session_of_another_left() -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address, browser() as user:
        assert (await asked(user, f"http://{address}{OWN}topics")).status == 200
        own.claims["groups"] = []
        assert (await asked(user, f"http://{address}{OWN}login")).status == 403
        assert (await asked(user, f"http://{address}{OWN}topics", follow=False)).status == 303


async def test_case_1052_a_session_of_the_page_commands_nothing_elsewhere() -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address, browser() as user:
        assert (await asked(user, f"http://{address}{OWN}topics")).status == 200
        (session,) = (each.value for each in user.cookie_jar if each.key.startswith("session-"))
        cookie = {"Cookie": f"session-orange-grape={session}"}
        async with user.put(f"http://{address}/connectors/replicator-orange/pause", headers=cookie) as answer:
            assert answer.status == 401


@pytest.mark.parametrize("name", ["", "\u200b\u202e", None])
async def test_case_1052_a_user_without_a_name_that_prints_is_called_by_the_providers_own(name: str | None) -> None:
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address, browser() as user:
        own.claims["preferred_username"] = name
        assert "1 has logged in." in (await asked(user, f"http://{address}{OWN}topics")).text


async def test_a_provider_that_names_itself_otherwise_is_said() -> None:
    async with provider() as own, browser() as user:
        async with shown(of_size({"orders": 2}), **variables(f"{own.issuer}/")) as address:
            answer = await asked(user, f"http://{address}{OWN}topics")
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
    async with provider() as own, shown(of_size({"orders": 2}), **variables(own.issuer)) as address:
        for path in ("https://evil.example/", "//evil.example", "/\\evil.example", f"{OWN}x\n", "javascript:x", ""):
            async with browser() as user:
                answer = await asked(user, str(URL(f"http://{address}{OWN}login").with_query(to=path)))
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
