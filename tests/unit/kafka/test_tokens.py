"""Tokens: how long one is used, and the token of MSK, checked by AWS's published rule of signatures."""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import time
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import CredentialsRefused, TokenUnavailable
from appliance.kafka.client.token_fetch import _in_answer, fetch_of
from appliance.kafka.client.tokens import Token, TokenSource, token_of
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.secret import Secret
from appliance.settings.values import SaslMechanism
from tests.support.settings import REQUIRED

KEY, SECRET, REGION = "AKIAEXAMPLE", "wJalrXUtnFEMI/K7MDENG/EXAMPLE", "eu-west-1"


class Tokens:
    """A fetch of numbered tokens with these lives; it waits for ``free``."""

    def __init__(self, lives: Iterable[float]) -> None:
        self.lives = list(lives)
        self.count = 0
        self.free = asyncio.Event()
        self.free.set()

    async def __call__(self) -> Token:
        await self.free.wait()
        self.count += 1
        if (life := self.lives.pop(0)) < 0:
            raise TokenUnavailable("not now")
        return Token(Secret(f"token {self.count}"), life)


async def test_a_token_is_used_until_most_of_its_life_has_passed() -> None:
    fetch = Tokens([1000.0, 1000.0])
    source = TokenSource(fetch)
    assert [(await source.token()).reveal() for _ in range(3)] == ["token 1"] * 3
    assert (await source.token(at_least=1001.0)).reveal() == "token 2"


async def test_a_token_that_is_nearly_over_is_replaced() -> None:
    source = TokenSource(Tokens([0.0, 1000.0]))
    assert [(await source.token()).reveal() for _ in range(3)] == ["token 1", "token 2", "token 2"]


async def test_all_that_wait_share_one_fetch_and_its_error_and_the_next_one_asks_again() -> None:
    fetch = Tokens([-1.0, 1000.0])
    source = TokenSource(fetch)
    fetch.free.clear()
    waiting = [asyncio.create_task(source.token()) for _ in range(5)]
    await asyncio.sleep(0)
    fetch.free.set()
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ends] == [TokenUnavailable] * 5
    assert (await source.token()).reveal() == "token 2"


async def test_who_gives_up_waiting_ends_no_fetch_of_others() -> None:
    fetch = Tokens([1000.0])
    source = TokenSource(fetch)
    fetch.free.clear()
    first, second = (asyncio.create_task(source.token()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    fetch.free.set()
    assert (await second).reveal() == "token 1"


async def test_a_token_that_a_broker_refuses_is_not_used_again() -> None:
    source = TokenSource(Tokens([1000.0, 1000.0]))
    await source.token()
    source.forget()
    assert (await source.token()).reveal() == "token 2"


def jwt(claims: object) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()}.c2ln"


def test_the_life_of_a_token_is_what_its_endpoint_says_or_else_the_token_or_else_a_minute() -> None:
    assert token_of(jwt({"exp": time.time() + 500}), 70.0).life == 70.0
    assert 499 < token_of(jwt({"exp": time.time() + 500})).life <= 500
    for text in ("opaque", jwt({}), jwt([]), jwt({"exp": "soon"}), "a.b.c", "a.\u007e.c"):
        assert token_of(text).life == 60.0


@pytest.mark.parametrize("text", ["", "two words", "two\nlines", "bell\a", "n\u00f6"])
def test_what_is_no_token_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ValueError, match="no token") as refused:
        token_of(text)
    assert not text or text not in str(refused.value)


def signature(host: str, query: dict[str, str]) -> str:
    """The signature of a GET of the query, by AWS's Signature Version 4."""
    date, scope = query["X-Amz-Date"], query["X-Amz-Credential"].partition("/")[2]
    pairs = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted(query.items()))
    asked = "\n".join(("GET", "/", pairs, f"host:{host}", "", "host", hashlib.sha256(b"").hexdigest()))
    signed = "\n".join(("AWS4-HMAC-SHA256", date, scope, hashlib.sha256(asked.encode()).hexdigest()))
    key = f"AWS4{SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, signed.encode(), "sha256").hex()


async def test_the_token_of_msk_is_a_request_to_connect_signed_for_fifteen_minutes() -> None:
    cluster = parse(REQUIRED, Role.REPLICATOR).source
    cluster = replace(
        cluster, mechanism=SaslMechanism.AWS_MSK_IAM, api_key=KEY, api_secret=Secret(SECRET), aws_region=REGION
    )
    token = await fetch_of(cluster)()
    text = token.text.reveal()
    assert "=" not in text
    url = urlsplit(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
    query = {name: value for name, (value,) in parse_qs(url.query, strict_parsing=True).items()}
    assert (url.scheme, url.hostname, url.path) == ("https", f"kafka.{REGION}.amazonaws.com", "/")
    assert query.pop("User-Agent").startswith("aws-msk-iam-sasl-signer-python/")
    given = query.pop("X-Amz-Signature")
    assert query == {
        "Action": "kafka-cluster:Connect",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{KEY}/{query['X-Amz-Date'][:8]}/{REGION}/kafka-cluster/aws4_request",
        "X-Amz-Date": query["X-Amz-Date"],
        "X-Amz-Expires": "900",
        "X-Amz-SignedHeaders": "host",
    }
    assert given == signature(f"kafka.{REGION}.amazonaws.com", query)
    assert 890 < token.life <= 900


NESTED, HUGE = "[" * 60_000, "1" + "0" * 400


@pytest.mark.parametrize("claims", [NESTED, f'{{"exp": {HUGE}}}', '{"exp": NaN}', '{"exp": Infinity}'])
def test_case_975_a_token_with_claims_that_nobody_should_make_is_used_for_a_minute(claims: str) -> None:
    # Before, they raised RecursionError and OverflowError, or were used for ever.
    assert token_of(f"e30.{base64.urlsafe_b64encode(claims.encode()).decode()}.c2ln").life == 60.0


@pytest.mark.parametrize(
    ("status", "body"),
    [
        *((400, body) for body in (NESTED, '{"error": []}')),
        (200, NESTED),
        (200, f'{{"access_token": "a", "expires_in": {HUGE}}}'),
    ],
)
def test_case_975_an_answer_that_no_token_endpoint_should_give_is_its_fault(status: int, body: str) -> None:
    cluster = parse(REQUIRED, Role.REPLICATOR).source
    with pytest.raises((TokenUnavailable, CredentialsRefused), match=r"^the endpoint"):
        _in_answer(cluster, "the endpoint", status, body.encode())


@pytest.mark.parametrize("seconds", ["Infinity", "1e999", '"inf"'])
def test_case_1065_a_token_that_is_said_to_last_for_ever_is_used_as_long_as_it_says_itself(seconds: str) -> None:
    # Before, it was never renewed, so that no login was repeated with a newer one.
    body = f'{{"access_token": "a", "expires_in": {seconds}}}'
    cluster = parse(REQUIRED, Role.REPLICATOR).source
    assert _in_answer(cluster, "the endpoint", 200, body.encode()).life == 60.0


@given(st.integers(), st.binary(max_size=200))
def test_no_answer_of_a_token_endpoint_raises_another_error(status: int, body: bytes) -> None:
    cluster = parse(REQUIRED, Role.REPLICATOR).source
    with contextlib.suppress(TokenUnavailable, CredentialsRefused):
        _in_answer(cluster, "the endpoint", status, body)
