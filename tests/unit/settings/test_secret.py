"""The guesses that a secret withstands."""

import re
import secrets
import subprocess
import sys
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.settings.role import Role
from appliance.settings.secret import new_secret, weakness
from tests.support.settings import SECRET, faults, parsed


@pytest.mark.parametrize(
    "weak",
    [
        "short",
        "Password123!Password2024!Kafka-Prod",
        "Summer2024!Winter2024!Spring2024!Autumn2024!",
        "P@ssw0rd-Kafka-Tunnel-2026-P@ssw0rd!!",
        "Correct-Horse-Battery-Staple-2024!",
        "ProductionKafkaSharedSecretForTunnel2024",
        "change-me-change-me-please-change-me-now",
        "qwertyuiopasdfghjklzxcvbnm1234567890",
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "correct horse " * 4,
        "0123456789" * 5,
        "a" * 64,
        "blithe otter paints nine quiet harbours",
        SECRET[:12] * 8,
        SECRET[:20],
    ],
)
def test_a_secret_of_words_dates_and_repetitions_is_refused_without_being_shown(weak: str) -> None:
    cause = weakness(weak)
    assert cause
    assert re.fullmatch(r"too easy to guess, it withstands 2\^\d+ guesses and has to withstand 2\^90: it .+", cause)
    pieces = {piece.lower() for piece in re.split(r"[^A-Za-z0-9]+", weak) if len(piece) > 2}
    assert not pieces & set(re.split(r"\W+", cause.lower()))


@pytest.mark.parametrize(
    "strong",
    [
        SECRET,
        "d41f2c9b07e85a36c1f0928b7d4e6a53",
        "9f0c1b7e-52d3-4c8a-b6e1-07ad94f3258c",
        "dial skimming unlearned polyester ahead crisped gravity",
        "dial-skimming-unlearned-polyester-ahead-crisped-gravity",
    ],
)
def test_generated_secrets_and_long_sentences_of_random_words_pass(strong: str) -> None:
    assert weakness(strong) is None


def test_secrets_of_the_usual_commands_pass() -> None:
    for _ in range(20):
        for secret in (new_secret.__wrapped__("SHARED_SECRET"), secrets.token_urlsafe(33), secrets.token_hex(32)):
            assert weakness(secret) is None
    assert weakness(f"{uuid.uuid4()}{uuid.uuid4()}") is None


def test_a_repetition_counts_once() -> None:
    once = SECRET[:26]
    assert weakness(once)
    assert weakness(once + once.upper() + once.lower())
    assert weakness(once + SECRET[26:]) is None


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_judged(text: str) -> None:
    assert weakness(text) or len(text) > 8


@pytest.mark.parametrize("length", [72, 73, 4096, 100_000])
def test_a_long_secret_is_judged_by_a_part_of_it(length: int) -> None:
    assert weakness(secrets.token_urlsafe(length)[:length]) is None
    assert weakness("lorem ipsum " * (length // 12))


def test_the_estimator_is_loaded_only_where_a_secret_is_judged() -> None:
    code = "import sys, appliance.cli, appliance.settings.secret; sys.exit('zxcvbn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", ["SHARED_SECRET", "SPARK_AUTHENTICATE_SECRET"])
@pytest.mark.parametrize("role", [Role.SOURCE, Role.DESTINATION, Role.REPLICATOR])
def test_a_weak_secret_is_refused_in_every_role_with_a_strong_one_ready_to_paste(name: str, role: Role) -> None:
    [fault] = faults(role, **{name: "Password123!Password2024!Kafka-Prod"})
    pasted = re.fullmatch(rf"{name}: too easy to guess, .*; a strong one, made just now: export {name}='(\S+)'", fault)
    assert pasted
    assert "Password" not in fault
    assert parsed(role, **{name: pasted[1]})


def test_two_weak_secrets_get_two_strong_ones() -> None:
    weak = faults(SHARED_SECRET="hunter2", SPARK_AUTHENTICATE_SECRET="hunter2")
    assert len({fault.rpartition("='")[2] for fault in weak}) == 2


def test_a_weak_secret_of_before_is_to_be_left_out() -> None:
    [fault] = faults(SHARED_SECRET_PREVIOUS="hunter2hunter2")
    assert fault.endswith("; leave it empty, and change SHARED_SECRET on both VMs at once")


def test_the_names_of_the_link_are_no_part_of_a_strong_secret() -> None:
    names = {"SOURCE_CLUSTER_ID": "tangerine-hz1", "SOURCE_BROKER_SERVERS": "b0.bromeliad.vq7.example:9092"}
    secret = {"SHARED_SECRET": "tangerine-hz1-quaxolotl-bromeliad-vq7-zebrafinch"}
    assert parsed(**secret)
    assert faults(**names, **secret)[0].startswith("SHARED_SECRET: too easy to guess, ")
