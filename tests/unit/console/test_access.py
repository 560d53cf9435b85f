import asyncio
import base64

import pytest

from appliance.console.access import SESSION_SECONDS, Access, Right, from_elsewhere, known_host
from appliance.settings.secret import Secret
from tests.support.clock import Clock

TOKEN = "a-token-of-the-operator"


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()


def test_a_session_begins_with_the_token_and_ends_by_itself() -> None:
    clock = Clock(1000.0)
    access = Access({Right.OPERATOR: Secret(TOKEN)}, clock)
    session = access.begin(Right.OPERATOR)
    assert access.in_session(session)
    clock.now += SESSION_SECONDS
    assert not access.in_session(session)


def test_an_ended_session_is_over() -> None:
    access = Access({Right.OPERATOR: Secret(TOKEN)}, Clock(1000.0))
    session = access.begin(Right.OPERATOR)
    access.end(session)
    assert not access.in_session(session)


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer  {TOKEN}", basic(TOKEN)])
def test_a_program_gives_the_token_as_a_bearers_or_as_a_password(given: str) -> None:
    assert Access({Right.OPERATOR: Secret(TOKEN)}, Clock(1000.0)).right_by(given)


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer no", basic("no"), "Basic !!", TOKEN, "Basic " + "é" * 3])
def test_nothing_else_is_the_token(given: str) -> None:
    assert not Access({Right.OPERATOR: Secret(TOKEN)}, Clock(1000.0)).right_by(given)


@pytest.mark.parametrize("given", ["", "anything"])
def test_without_a_token_in_the_settings_nobody_has_it(given: str) -> None:
    access = Access({Right.OPERATOR: Secret("")}, Clock(1000.0))
    assert access.right_of_token(given) is Right.NONE
    assert not access.right_by(f"Bearer {given}")
    assert not access.in_session("")


async def test_case_990_the_right_token_is_accepted_at_once_whatever_wrong_ones_came_before() -> None:
    held: list[asyncio.Future[None]] = []

    async def sleep(seconds: float) -> None:
        assert seconds > 0
        held.append(asyncio.get_running_loop().create_future())
        await held[-1]

    access = Access({Right.OPERATOR: Secret(TOKEN)}, Clock(1000.0), sleep)
    wrong = [asyncio.create_task(access.delay()) for _ in range(1000)]
    while len(held) < 64 or sum(task.done() for task in wrong) < 936:
        await asyncio.sleep(0)
    assert not any(task.result() for task in wrong if task.done()), "beyond the bound, no connection is held"
    assert access.right_of_token(TOKEN) is Right.OPERATOR
    assert access.right_by(f"Bearer {TOKEN}")
    for each in held:
        each.set_result(None)
    assert sum(await asyncio.gather(*wrong)) == len(held) == 64


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({}, False),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8082"}, False),
        ({"Origin": "http://127.0.0.1:8082"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        ({"Sec-Fetch-Site": "same-site"}, True),
        ({"Origin": "http://evil.example"}, True),
        ({"Origin": "null"}, True),
        ({"Origin": "http://127.0.0.1:8083"}, True),
    ],
)
def test_a_request_for_a_page_of_another_site_is_refused(headers: dict[str, str], refused: bool) -> None:
    assert from_elsewhere({"Host": "127.0.0.1:8082"} | headers) is refused


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8082",
        "[::1]:8082",
        "localhost",
        "localhost.:8082",
        "control-center:8082",
        "Kafka.example.com:443",
        "x.localhost",
    ],
)
def test_the_page_is_called_by_addresses_and_by_names_of_its_own(host: str) -> None:
    assert known_host(host, ("kafka.example.com", "control-center"))


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8082",
        "127.0.0.1.evil.example",
        "kafka.example.com.evil",
        "evil",
        "evil:8082",
        "1",
        "",
        "[evil]",
        "a:b",
    ],
)
def test_case_984_a_name_of_another_site_is_none_of_its_own(host: str) -> None:
    assert not known_host(host, ("kafka.example.com",))


def test_case_284_a_header_that_is_no_text_is_a_wrong_token() -> None:
    assert not Access({Right.OPERATOR: Secret(TOKEN)}, Clock(1000.0)).right_by(
        b"Bearer \xff".decode(errors="surrogateescape")
    )


def test_case_284_a_token_beyond_ascii_is_compared_as_text() -> None:
    assert Access({Right.OPERATOR: Secret("schlüssel")}, Clock(1000.0)).right_of_token("schlüssel")
