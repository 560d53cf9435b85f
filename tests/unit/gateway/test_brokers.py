import pytest

from appliance.errors import (
    ApplianceError,
    BrokerUnsupported,
    CredentialsRefused,
    IdentityRefused,
    NameUnresolved,
    PeerError,
    SettingsError,
    TimedOut,
)
from appliance.gateway.model import brokers as brokers_module
from appliance.gateway.model.brokers import Fault, compare
from appliance.settings.target import AllowedTargets, Target, TargetPattern
from appliance.tunnel.model.allowlist import why_refused
from tests.support.brokers import ALLOWED, B0, B1, B2, BY_ADDRESS, OTHER_NAME, OTHER_PORT


def test_each_broker_is_opened_on_its_own_port_and_one_outside_of_the_list_is_refused() -> None:
    change = compare(ALLOWED, {}, {0: B0, 1: B1, 2: OTHER_NAME, 3: OTHER_PORT, 4: BY_ADDRESS})
    assert change.open == (B0, B1)
    assert change.refused == (OTHER_NAME, OTHER_PORT, BY_ADDRESS)


def test_a_broker_that_joined_moved_or_left_is_news_and_one_that_stayed_is_not() -> None:
    change = compare(ALLOWED, {0: B0, 1: B1, 5: OTHER_PORT}, {0: B0, 1: B2, 3: B1})
    assert change.joined == (B1,)
    assert change.moved == ((B1, B2),)
    assert change.left == (OTHER_PORT,)
    assert change.brokers == {0: B0, 1: B2, 3: B1}
    again = compare(ALLOWED, change.brokers, change.brokers)
    assert (again.joined, again.moved, again.left) == ((), (), ())
    assert set(again.open) == {B0, B1, B2}


def test_two_nodes_at_one_address_are_one_endpoint() -> None:
    assert compare(ALLOWED, {}, {0: B0, 1: B0}).open == (B0,)


def test_a_cluster_that_lists_too_many_is_believed_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers_module, "BROKERS_MAX", 2)
    assert compare(ALLOWED, {}, {2: B2, 1: B1, 0: B0}).brokers == {0: B0, 1: B1}


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (OTHER_PORT, "its name is allowed on other ports only: 9092-9098, 9100"),
        (OTHER_NAME, "its name is not allowed"),
        (BY_ADDRESS, "it is advertised by an address, and the tunnel goes to names only"),
    ],
)
def test_a_refused_broker_is_shown_with_the_reason(target: Target, reason: str) -> None:
    allowed = AllowedTargets(ALLOWED.exact, (*ALLOWED.patterns, TargetPattern("orange.example", 9100)))
    assert why_refused(allowed, target) == reason


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (CredentialsRefused("?"), Fault.CREDENTIALS),
        (IdentityRefused("?"), Fault.IDENTITY),
        (PeerError("?"), Fault.PROTOCOL),
        (NameUnresolved("?"), Fault.UNREACHABLE),
        (TimedOut("?"), Fault.UNREACHABLE),
        (SettingsError(["?"]), Fault.SETTINGS),
        (BrokerUnsupported("?"), Fault.OTHER),
    ],
)
def test_a_wrong_key_is_distinguished_from_a_cluster_that_is_away(error: ApplianceError, fault: Fault) -> None:
    assert Fault.of(error) is fault
