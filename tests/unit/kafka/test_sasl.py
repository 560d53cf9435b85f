import base64
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import CredentialsRefused, PeerError
from appliance.kafka.protocol import sasl
from appliance.settings.secret import Secret
from appliance.settings.values import SaslMechanism


def test_plain_is_one_token() -> None:
    conversation = sasl.tokens(SaslMechanism.PLAIN, "key", Secret("s3cret"))
    assert next(conversation) == b"\0key\0s3cret"
    with pytest.raises(StopIteration):
        conversation.send(b"")


def rfc_7677() -> sasl.Tokens:
    return sasl._scram("sha256", "user", Secret("pencil"), "rOprNGfwEbeRWgbNEkqO")


def begun(*answers: bytes) -> sasl.Tokens:
    """The same conversation after its first token and these answers."""
    conversation = rfc_7677()
    next(conversation)
    for answer in answers:
        conversation.send(answer)
    return conversation


SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def test_scram_speaks_the_example_of_rfc_7677() -> None:
    conversation = rfc_7677()
    assert next(conversation) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert conversation.send(SERVER_FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    with pytest.raises(StopIteration):
        conversation.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_scram_refuses_a_broker_that_does_not_know_the_password() -> None:
    with pytest.raises(PeerError, match="prove"):
        begun(SERVER_FIRST).send(b"v=" + base64.b64encode(bytes(32)))


@pytest.mark.parametrize(
    "challenge",
    [b"r=another,s=AAAA,i=4096", b"r=rOprNGfwEbeRWgbNEkqOx,s=AAAA,i=99999999", b"nonsense", b"\xff"],
)
def test_scram_refuses_a_challenge_that_is_not_for_us(challenge: bytes) -> None:
    with pytest.raises(PeerError):
        begun(challenge)


@pytest.mark.parametrize(
    "challenge",
    [
        *(
            b"r=%sx,i=4096",
            b"s=AAAA,i=4096",
            b"r=%sx,s=AAAA",
            b"r=%sx,s=AAAA,i=q",
            b"r=%sx,s=A,i=4096",
            b"r=%sx,s=,i=4096",
        ),
        *(b"r=%sx,s=AAAA,i=1", b"r=%sx,s=AAAA,i=1000000000", b"r=%sx,s=AAAA,i=-1", b"m=x,r=%sx,s=AAAA,i=4096"),
    ],
)
def test_case_974_a_challenge_that_is_none_of_scram_is_the_brokers_fault(challenge: bytes) -> None:
    # Before, a part that was missing raised KeyError, i=q ValueError; and a million rounds held up everything else.
    with pytest.raises(PeerError):
        begun(challenge.replace(b"%s", b"rOprNGfwEbeRWgbNEkqO"))


@given(st.binary(max_size=80), st.sampled_from([b"", b"v=", b"r=rOprNGfwEbeRWgbNEkqO", SERVER_FIRST]), st.booleans())
def test_no_message_of_a_broker_raises_another_error(noise: bytes, begin: bytes, final: bool) -> None:
    with contextlib.suppress(PeerError, CredentialsRefused):
        begun(*([SERVER_FIRST] if final else []), begin + noise)


def test_scram_says_that_the_password_is_wrong() -> None:
    with pytest.raises(CredentialsRefused, match="invalid-proof"):
        begun(SERVER_FIRST, b"e=invalid-proof")


def test_oauthbearer_sends_the_token_and_its_extensions() -> None:
    conversation = sasl.bearer(Secret("abc.def"), (("logicalCluster", "lkc-1"),))
    assert next(conversation) == b"n,,\x01auth=Bearer abc.def\x01logicalCluster=lkc-1\x01\x01"
    with pytest.raises(StopIteration):
        conversation.send(b"")


def test_oauthbearer_acknowledges_a_refusal_and_is_refused_then() -> None:
    conversation = sasl.bearer(Secret("abc.def"))
    next(conversation)
    assert conversation.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(CredentialsRefused, match="invalid_token"):
        conversation.send(b"")
