"""Users log in to the control center at a real Keycloak, in a real browser, and get the right of their group."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.console.browser import Browser, browser
from tests.console.conftest import Center, control_center
from tests.console.keycloak import CLIENT, CLIENT_SECRET, PASSWORD, keycloak

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def issuer(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    async with keycloak(tmp_path_factory.mktemp("keycloak")) as address:
        yield address


@pytest.fixture
def seen_elsewhere() -> Iterator[Browser]:
    """A new browser, which may also ask Keycloak, and be refused."""
    with browser() as made:
        yield made


@contextlib.asynccontextmanager
async def page_with_logins(center: Center, issuer: str) -> AsyncIterator[str]:
    own = {
        "CONSOLE_OIDC_ISSUER": issuer,
        "CONSOLE_OIDC_CLIENT_ID": CLIENT,
        "CONSOLE_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "CONSOLE_OIDC_OPERATORS": "kafka-operators",
        "CONSOLE_OIDC_VIEWERS": "kafka-viewers",
    }
    async with control_center(center.link, **own) as (_, address):
        yield f"http://{address}"


def log_in(seen: Browser, page: str, user: str) -> None:
    seen.open(page)
    seen.fill("#username", user)
    seen.fill("#password", PASSWORD)
    (button,) = seen.find("#kc-login")
    button.click()


async def test_an_operator_logs_in_commands_under_that_name_and_ends_the_session(
    lasting: Center, issuer: str, seen_elsewhere: Browser
) -> None:
    seen = seen_elsewhere
    async with page_with_logins(lasting, issuer) as page:
        await asyncio.to_thread(log_in, seen, f"{page}/links/orange-grape/actions", "alice")
        await asyncio.to_thread(seen.wait, "the commands", lambda: seen.find("form[action$='/actions/pause']"))
        assert seen.driver.current_url == f"{page}/links/orange-grape/actions", "the page that was wanted"
        await asyncio.to_thread(seen.fill, "#pause-why", "a login")
        await asyncio.to_thread(seen.click, "Pause: dry run")
        await asyncio.to_thread(seen.click, "Pause now")
        await asyncio.to_thread(seen.wait_for, "Pause: done")
        await asyncio.to_thread(seen.click, "Link")
        await asyncio.to_thread(seen.wait_for, "paused", "alice (control center)@")
        await asyncio.to_thread(seen.click, "Commands")
        await asyncio.to_thread(seen.click, "Resume: dry run")
        await asyncio.to_thread(seen.click, "Resume now")
        await asyncio.to_thread(seen.wait_for, "Resume: done")
        await asyncio.to_thread(seen.click, "End the session")
        await asyncio.to_thread(seen.wait_for, "The session has ended here.")
        assert not [each for each in seen.driver.get_cookies() if each["name"].startswith("session-")]


@pytest.mark.release  # held by tests/real/console/test_logins.py
async def test_a_viewer_logs_in_reads_every_page_and_commands_nothing(
    lasting: Center, issuer: str, seen_elsewhere: Browser
) -> None:
    seen = seen_elsewhere
    async with page_with_logins(lasting, issuer) as page:
        await asyncio.to_thread(log_in, seen, f"{page}/", "bob")
        await asyncio.to_thread(seen.wait_for, "orange → grape")
        assert seen.driver.current_url == f"{page}/links/orange-grape/overview"
        await asyncio.to_thread(seen.open, f"{page}/links/orange-grape/actions")
        await asyncio.to_thread(seen.wait_for, "bob reads, and sends no commands.")
        assert not seen.find("form[action*='/actions/']")


@pytest.mark.release  # held by tests/real/console/test_logins.py
async def test_a_user_of_neither_group_gets_no_session(lasting: Center, issuer: str, seen_elsewhere: Browser) -> None:
    seen = seen_elsewhere
    async with page_with_logins(lasting, issuer) as page:
        await asyncio.to_thread(log_in, seen, f"{page}/links/orange-grape/", "carol")
        await asyncio.to_thread(seen.wait_for, "carol is neither an operator nor a viewer of this link.")
        assert not [each for each in seen.driver.get_cookies() if each["name"].startswith("session-")]
