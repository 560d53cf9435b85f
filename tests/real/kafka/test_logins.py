"""Logins of each kind at real brokers, their refusals, and their renewal while requests go on."""

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import pytest_asyncio
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from appliance.errors import ApplianceError, CertificateRefused, CredentialsRefused, TokenUnavailable
from appliance.kafka.client import login
from appliance.kafka.client.cluster import KafkaCluster
from appliance.settings.logins import ClientCertificate, OAuthSettings
from appliance.settings.secret import Secret
from appliance.settings.values import ClusterSettings, SaslMechanism, SecurityProtocol, Side
from testbed.cluster import Cluster
from testbed.plan import ApiKey, ClusterPlan, Node
from tests.support.authority import Authority, Leaf
from tests.support.authority import replace as replace_file
from tests.support.listeners import asking_for_certificates, taking_msk_tokens, taking_tokens, with_properties
from tests.support.oauth import TokenAuthority, TokenEndpoint, token_endpoint, until_granted
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

SESSION = 4.0
"""Seconds of a session at the brokers."""

USER = ApiKey("USER", Secret("user-secret"))
CLIENT = ("client id", "its: secret & more")


@dataclass
class Brokers:
    """Two clusters of one broker: one takes tokens of ``authority``, the other asks for certificates of ``trusted``."""

    tokens: Cluster
    certificates: Cluster
    authority: TokenAuthority
    endpoint: TokenEndpoint
    trusted: Authority
    directory: Path
    stranger: Authority = field(default_factory=Authority)

    def oauth(self, **changed: object) -> ClusterSettings:
        """The settings of a login by tokens of the endpoint."""
        oauth = OAuthSettings(self.endpoint.url, "kafka", self.endpoint.ca_file)
        targets, ca_file = self.tokens.vpc_targets, self.tokens.ca_file
        key, secret = CLIENT[0], Secret(CLIENT[1])
        protocol, mechanism = SecurityProtocol.SASL_SSL, SaslMechanism.OAUTHBEARER
        return ClusterSettings(
            Side.SOURCE, "orange", targets, key, secret, protocol, mechanism, ca_file, None, replace(oauth, **changed)
        )

    def command(self, *line: str) -> ClusterSettings:
        """The settings of a login by tokens of a command."""
        return replace(self.oauth(token_url="", command=line), api_key="", api_secret=Secret(""))

    def password(self, mechanism: SaslMechanism) -> ClusterSettings:
        """The settings of a login by a password, which brokers of SCRAM are told first."""
        if mechanism is not SaslMechanism.PLAIN:
            kind = ScramMechanism[mechanism.replace("-", "_")]
            made = UserScramCredentialUpsertion(
                USER.key, ScramCredentialInfo(kind, 4096), USER.secret.reveal().encode()
            )
            admin = AdminClient(self.tokens.client_configuration())
            admin.alter_user_scram_credentials([made])[USER.key].result(PATIENCE)
        return replace(
            self.oauth(),
            bootstrap=self.tokens.home_targets,
            mechanism=mechanism,
            api_key=USER.key,
            api_secret=USER.secret,
        )

    def mutual(self, certificate: ClientCertificate | None) -> ClusterSettings:
        """The settings of a login by a certificate."""
        return ClusterSettings(
            Side.DESTINATION,
            "grape",
            self.certificates.vpc_targets,
            "",
            Secret(""),
            SecurityProtocol.SSL,
            SaslMechanism.PLAIN,
            self.certificates.ca_file,
            certificate,
        )

    def aws(self, cluster: Cluster, key: str = "", secret: str = "") -> ClusterSettings:
        """The settings of a login to MSK, of which no broker is here."""
        return replace(
            self.oauth(token_url=""),
            bootstrap=cluster.vpc_targets if cluster is self.tokens else cluster.home_targets,
            mechanism=SaslMechanism.AWS_MSK_IAM,
            ca_file=cluster.ca_file,
            api_key=key,
            api_secret=Secret(secret),
            aws_region="eu-west-1",
        )

    def files(self, leaf: Leaf, name: str = "own", password: str = "") -> ClientCertificate:
        """The files of a certificate and its key."""
        own = ClientCertificate(
            self.directory / name / "certificate.pem", self.directory / name / "key.pem", Secret(password)
        )
        replace_file(own.key, leaf.key)
        replace_file(own.file, leaf.certificate)
        return own


def plan(name: str, address: str) -> ClusterPlan:
    """One broker, whose second listener is advertised by the same address."""
    made = ClusterPlan(name, (Node(0, address, address),), SecurityProtocol.SASL_SSL, (USER,))
    return with_properties(made, {"connections.max.reauth.ms": f"{SESSION * 1000:.0f}"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def brokers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Brokers]:
    directory = tmp_path_factory.mktemp("logins")
    authority, trusted = TokenAuthority(), Authority()
    keys, authorities = authority.write_keys(directory / "keys.json"), directory / "clients.pem"
    authorities.write_bytes(trusted.pem)
    tokens = Cluster(taking_tokens(plan("tokens", "127.0.44.1"), keys, SESSION), directory)
    asking = asking_for_certificates(plan("certificates", "127.0.44.2"), authorities)
    certificates = Cluster(taking_msk_tokens(asking, directory / "classes"), directory)
    async with tokens, certificates, token_endpoint(directory, authority, CLIENT, "robot") as endpoint:
        yield Brokers(tokens, certificates, authority, endpoint, trusted, directory)


@asynccontextmanager
async def connected(settings: ClusterSettings) -> AsyncIterator[KafkaCluster]:
    async def as_it_is(host: str) -> tuple[str, ...]:
        return (host,)

    async with asyncio.timeout(PATIENCE), KafkaCluster(settings, as_it_is, "test") as cluster:
        yield cluster


async def refusal(settings: ClusterSettings) -> ApplianceError:
    with pytest.raises(ApplianceError) as refused:
        async with connected(settings) as cluster:
            await cluster.metadata([])
    return refused.value


@contextmanager
def answering(endpoint: TokenEndpoint, status: int) -> Iterator[None]:
    endpoint.status = status
    try:
        yield
    finally:
        endpoint.status = 200


async def ask_on(cluster: KafkaCluster) -> None:
    """Ask without a pause, with several requests under way at any time, on what has to stay one connection."""
    connection = await cluster.any_broker()

    async def ask() -> None:
        while True:
            await cluster.metadata([])
            assert await cluster.any_broker() is connection
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as asking:
        for _ in range(3):
            asking.create_task(ask())


async def ask_until(cluster: KafkaCluster, enough: "asyncio.Task[None]") -> None:
    asking = asyncio.create_task(ask_on(cluster))
    try:
        await asyncio.wait((asking, enough), return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            await asking
    finally:
        for task in (asking, enough):
            task.cancel()
        await asyncio.gather(asking, enough, return_exceptions=True)


async def test_a_token_is_renewed_before_it_expires_and_requests_go_on_on_their_connection(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokers.authority, "life", 6)
    before = brokers.endpoint.granted
    async with connected(brokers.oauth()) as cluster:
        await ask_until(cluster, asyncio.create_task(until_granted(brokers.endpoint, before + 3)))
    assert set(brokers.endpoint.scopes) == {"kafka"}


@pytest.mark.parametrize(
    "mechanism",
    [
        SaslMechanism.SCRAM_SHA_512,
        *(pytest.param(each, marks=pytest.mark.release) for each in (SaslMechanism.PLAIN, SaslMechanism.SCRAM_SHA_256)),
    ],
)
async def test_case_310_a_session_that_the_broker_limits_is_renewed_with_a_password_too(
    brokers: Brokers, mechanism: SaslMechanism
) -> None:
    # Before, the broker closed every connection at the end of each session.
    async with connected(await asyncio.to_thread(brokers.password, mechanism)) as cluster:
        await ask_until(cluster, asyncio.create_task(asyncio.sleep(1.5 * SESSION)))


async def test_all_connections_share_one_token(brokers: Brokers) -> None:
    before = brokers.endpoint.granted
    async with connected(brokers.oauth()) as cluster:
        await cluster.metadata([])
        await asyncio.gather(*(cluster.broker(0, purpose) for purpose in ("read", "write", "transactions")))
    assert brokers.endpoint.granted == before + 1


async def test_a_command_prints_the_token(brokers: Brokers) -> None:
    async with connected(brokers.command("echo", brokers.authority.token("robot"))) as cluster:
        await cluster.metadata([])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/nowhere/token --now", "/nowhere/token cannot be run: no such file or directory"),
        (f"{sys.executable} -c 'print(1234); exit(3)'", f"{sys.executable} failed with exit code 3: run it by hand"),
        ("printf '1234 5678'", "printf printed no token: expected it alone, on one line"),
        ("true", "true printed no token"),
    ],
)
async def test_a_command_that_gives_no_token_is_named_and_what_it_prints_is_not(
    brokers: Brokers, line: str, expected: str
) -> None:
    error = await refusal(brokers.command(*shlex.split(line)))
    assert isinstance(error, TokenUnavailable)
    assert str(error).startswith(f"SOURCE_OAUTH_TOKEN_COMMAND: {expected}")
    assert "1234" not in str(error)


async def test_an_endpoint_that_refuses_the_key_is_told_in_one_line_without_its_words(brokers: Brokers) -> None:
    error = await refusal(replace(brokers.oauth(), api_secret=Secret("wrong")))
    assert isinstance(error, CredentialsRefused)
    assert str(error) == (
        f"SOURCE_OAUTH_TOKEN_URL={brokers.endpoint.url} refuses SOURCE_API_KEY={CLIENT[0]} (HTTP 401: invalid_client): "
        "check SOURCE_API_KEY, SOURCE_API_SECRET, SOURCE_OAUTH_SCOPE"
    )


async def test_an_endpoint_that_fails_is_told_and_asked_again(brokers: Brokers) -> None:
    async with connected(brokers.oauth()) as cluster:
        with answering(brokers.endpoint, 503), pytest.raises(TokenUnavailable) as failed:
            await cluster.metadata([])
        assert str(failed.value) == f"SOURCE_OAUTH_TOKEN_URL={brokers.endpoint.url}: HTTP 503 in place of a token"
        assert failed.value.retriable
        await cluster.metadata([])


async def test_an_endpoint_whose_certificate_is_not_trusted_is_told(brokers: Brokers) -> None:
    error = await refusal(brokers.oauth(ca_file=brokers.tokens.ca_file))
    assert isinstance(error, TokenUnavailable)
    assert str(error).startswith(f"SOURCE_OAUTH_TOKEN_URL={brokers.endpoint.url}: its certificate is not accepted: ")
    assert str(error).endswith(": check SOURCE_OAUTH_CA_FILE")


async def test_a_session_outlives_an_endpoint_that_is_down_for_a_moment(
    brokers: Brokers, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "_AGAIN_FROM", 0.0)
    monkeypatch.setattr(login, "_RETRY", 0.1)
    monkeypatch.setattr(brokers.authority, "life", 6)

    async def down_and_up() -> None:
        with answering(brokers.endpoint, 503):
            while "no token for the next login" not in caplog.text:
                await asyncio.sleep(0.01)
        await until_granted(brokers.endpoint, brokers.endpoint.granted + 2)

    async with connected(brokers.oauth()) as cluster:
        await cluster.metadata([])
        await ask_until(cluster, asyncio.create_task(down_and_up()))


async def test_a_token_of_another_authority_is_refused_and_the_next_login_gets_a_new_one(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(brokers.oauth()) as cluster:
        with monkeypatch.context() as other:
            other.setattr(brokers.authority, "key", TokenAuthority().key)
            with pytest.raises(CredentialsRefused) as refused:
                await cluster.metadata([])
        assert "the source cluster refuses SOURCE_API_KEY=client id: check the token of SOURCE_OAUTH_TOKEN_URL" in str(
            refused.value
        )
        await cluster.metadata([])


async def test_a_token_that_aws_credentials_sign_goes_through_the_login_of_msk(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    async with connected(brokers.aws(brokers.certificates, "AKIAEXAMPLE", "wJalrXUtnFEMI/EXAMPLE")) as cluster:
        await ask_until(cluster, asyncio.create_task(asyncio.sleep(1.5 * SESSION)))
    error = await refusal(brokers.aws(brokers.certificates))
    assert isinstance(error, TokenUnavailable)
    assert str(error) == (
        "SOURCE_SASL_MECHANISM=AWS_MSK_IAM: no AWS credentials are found here: set SOURCE_API_KEY and "
        "SOURCE_API_SECRET, or AWS's own"
    )
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOFTHEENVIRONMENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-environment")
    async with connected(brokers.aws(brokers.certificates)) as cluster:
        await cluster.metadata([])


async def test_a_broker_that_does_not_take_the_token_of_aws_is_told_of(brokers: Brokers) -> None:
    error = await refusal(brokers.aws(brokers.tokens, "AKIAEXAMPLE", "wJalrXUtnFEMI/EXAMPLE"))
    assert isinstance(error, CredentialsRefused)
    assert str(error).startswith(
        "the source cluster refuses SOURCE_SASL_MECHANISM=AWS_MSK_IAM: check that the identity"
    )


async def test_a_certificate_logs_in_without_any_key(brokers: Brokers) -> None:
    own = brokers.files(brokers.trusted.leaf(Side.DESTINATION))
    async with connected(brokers.mutual(own)) as cluster:
        await cluster.metadata([])


async def test_a_key_with_a_password_is_read_with_it(brokers: Brokers) -> None:
    leaf = brokers.trusted.leaf(Side.DESTINATION)
    key = load_pem_private_key(leaf.key, None)
    closed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pass word"))
    own = brokers.files(replace(leaf, key=closed), "closed", "pass word")
    async with connected(brokers.mutual(own)) as cluster:
        await cluster.metadata([])


async def test_a_broker_that_asks_for_a_certificate_is_told_of_by_the_variables_to_set(brokers: Brokers) -> None:
    error = await refusal(brokers.mutual(None))
    assert isinstance(error, CertificateRefused)
    assert "does not accept our certificate, or that we show none" in str(error)
    assert "set DESTINATION_SSL_CERTIFICATE_FILE and DESTINATION_SSL_KEY_FILE" in str(error)


async def test_a_certificate_that_the_broker_does_not_trust_is_told_of_by_its_variable(brokers: Brokers) -> None:
    own = brokers.files(brokers.stranger.leaf(Side.DESTINATION), "stranger")
    error = await refusal(brokers.mutual(own))
    assert isinstance(error, CertificateRefused)
    assert f"check DESTINATION_SSL_CERTIFICATE_FILE={own.file}, and which authorities its listener trusts" in str(error)


async def test_new_certificate_files_are_taken_by_the_next_connection_and_half_written_ones_are_not(
    brokers: Brokers,
) -> None:
    first, second = (brokers.trusted.leaf(Side.DESTINATION) for _ in range(2))
    own = brokers.files(first, "renewed")
    async with connected(brokers.mutual(own)) as cluster:
        await cluster.metadata([])
        replace_file(own.file, second.certificate)
        await cluster.broker(0, "read")
        replace_file(own.key, second.key)
        await cluster.broker(0, "write")
        brokers.files(brokers.stranger.leaf(Side.DESTINATION), "renewed")
        with pytest.raises(CertificateRefused):
            await cluster.broker(0, "transactions")
