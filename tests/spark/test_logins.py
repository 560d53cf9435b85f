"""The replicator with its tunnel, its Spark and its doctor, logged in by certificates and by tokens."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.settings.values import Side
from testbed.plan import Node
from testbed.process import OwnedProcess
from tests.support.authority import Authority
from tests.support.authority import replace as replace_file
from tests.support.disclosure import disclosing
from tests.support.link import GRAPE, ORANGE, Link, faults, lines, link, shown_by
from tests.support.listeners import asking_for_certificates, taking_tokens
from tests.support.oauth import TokenAuthority, token_endpoint
from tests.support.patience import PATIENCE
from tests.support.rows import read_rows, until_rows

SESSION = 5.0
CLIENT = ("replicator", "client-secret-of-oauth")
GRAPE_BY_ADDRESS = replace(GRAPE, nodes=(Node(0, "127.0.5.1", "127.0.5.1"),))
"""The destination's broker advertises its address on the second listener too: no DNS knows its name."""


def certificate(directory: Path, side: str, authority: Authority) -> dict[str, str]:
    """The settings of a login by a new certificate of the authority."""
    leaf, folder = authority.leaf(Side.DESTINATION), directory / f"{side.lower()}-certificate"
    replace_file(folder / "key.pem", leaf.key)
    replace_file(folder / "certificate.pem", leaf.certificate)
    return {
        f"{side}_SECURITY_PROTOCOL": "SSL",
        f"{side}_API_KEY": "",
        f"{side}_API_SECRET": "",
        f"{side}_SSL_CERTIFICATE_FILE": str(folder / "certificate.pem"),
        f"{side}_SSL_KEY_FILE": str(folder / "key.pem"),
    }


def destination(on: Link, authority: Authority) -> dict[str, str]:
    """The settings of a destination that asks for a certificate."""
    servers = {"DESTINATION_BROKER_SERVERS": ",".join(map(str, on.grape.vpc_targets))}
    return servers | certificate(on.directory, "DESTINATION", authority)


@contextlib.asynccontextmanager
async def copying(on: Link, changed: dict[str, str]) -> AsyncIterator[OwnedProcess]:
    """Both ends of the tunnel and the replicator, with one topic to copy."""
    on.make_topic(on.orange, "orders", 2)
    async with (
        on.running("source", **changed) as source,
        on.running("destination", **changed) as gateway,
        on.running("replicate", **changed) as replicator,
    ):
        for process in (source, gateway):
            await process.wait_for_line("ready", PATIENCE)
        yield replicator


async def examined(on: Link, side: str, changed: dict[str, str]) -> tuple[int | None, str]:
    """The exit code and the output of the doctor."""
    async with on.running("doctor", side, **changed) as doctor:
        code = await doctor.wait(PATIENCE)
        return code, "\n".join(lines(doctor))


async def assert_copied(on: Link, count: int) -> None:
    for partition in range(2):
        copied = await until_rows(on.grape, "orders.copy", count, partition)
        assert copied == await asyncio.to_thread(read_rows, on.orange, "orders", partition)


@pytest.mark.release  # held by tests/real/kafka/test_logins.py
async def test_copying_goes_on_across_the_sessions_of_tokens_that_expire_and_no_record_is_lost(tmp_path: Path) -> None:
    tokens, clients = TokenAuthority(life=12), Authority()
    keys, authorities = tokens.write_keys(tmp_path / "keys.json"), tmp_path / "clients.pem"
    authorities.write_bytes(clients.pem)
    plans = taking_tokens(ORANGE, keys, SESSION), asking_for_certificates(GRAPE_BY_ADDRESS, authorities)
    async with link(tmp_path, *plans) as on, token_endpoint(tmp_path, tokens, CLIENT, "robot") as endpoint:
        by_token = {
            "SOURCE_SASL_MECHANISM": "OAUTHBEARER",
            "SOURCE_API_KEY": CLIENT[0],
            "SOURCE_API_SECRET": CLIENT[1],
            "SOURCE_OAUTH_TOKEN_URL": endpoint.url,
            "SOURCE_OAUTH_CA_FILE": str(endpoint.ca_file),
        }
        changed = by_token | destination(on, clients)
        async with copying(on, changed) as replicator:
            count = 0
            before = endpoint.granted
            while endpoint.granted < before + 9:  # the gateway, the driver and the task have tokens of their own
                for partition in range(2):
                    await asyncio.to_thread(on.produce, "orders", 50, partition)
                count += 50
            await assert_copied(on, count)
            assert faults(replicator) == []
            secrets = (CLIENT[1], *endpoint.tokens)
            shown = shown_by(replicator)
            assert not [secret for secret in secrets if secret in shown]
            assert not disclosing(on.directory, secrets)
            code, table = await examined(on, "destination", changed)
            assert code == 0, table
            code, table = await examined(on, "destination", changed | {"SOURCE_API_SECRET": "wrong"})
            assert code == 1
            assert f"SOURCE_OAUTH_TOKEN_URL={endpoint.url} refuses SOURCE_API_KEY={CLIENT[0]}" in table


@pytest.mark.release  # held by tests/real/kafka/test_logins.py
async def test_certificates_log_in_on_both_sides_and_one_that_is_not_trusted_is_named(tmp_path: Path) -> None:
    clients = Authority()
    authorities = tmp_path / "clients.pem"
    authorities.write_bytes(clients.pem)
    plans = (asking_for_certificates(plan, authorities) for plan in (ORANGE, GRAPE_BY_ADDRESS))
    async with link(tmp_path, *plans) as on:
        changed = certificate(tmp_path, "SOURCE", clients) | destination(on, clients)
        async with copying(on, changed) as replicator:
            for partition in range(2):
                on.produce("orders", 200, partition)
            await assert_copied(on, 200)
            assert faults(replicator) == []
            code, table = await examined(on, "destination", changed)
            assert code == 0, table
            assert "our certificate ends in 1 days" in table
            no_file = {f"SOURCE_SSL_{name}_FILE": "/nowhere/own.pem" for name in ("CERTIFICATE", "KEY")}
            code, table = await examined(on, "source", changed | no_file)
            assert code == 0, table
            code, table = await examined(on, "destination", changed | certificate(tmp_path, "SOURCE", Authority()))
            assert code == 1
            assert "check SOURCE_SSL_CERTIFICATE_FILE=" in table
            (tmp_path / "source-certificate" / "key.pem").chmod(0o644)
            code, table = await examined(on, "destination", changed)
            assert code == 1
            assert "SOURCE_SSL_KEY_FILE=" in table
            assert "expected a file that others cannot read" in table
