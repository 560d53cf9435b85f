"""No secret leaves the processes of the tunnel by a log, an error, a process list, a page or a file."""

import asyncio
import base64
import contextlib
import functools
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from appliance.tls.certificates import authority_key
from bench.lib.running import OWN_ADDRESS, free_port
from tests.support import carrying
from tests.support.dns import addresses, answer, resolve, scripted_server
from tests.support.gateway import gateway_process, gateway_variables
from tests.support.processes import family
from tests.support.settings import write_settings
from tests.support.tls import key_of
from tests.support.tunnel import HOST, echo, target_server

TEMPORARY = (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))


@dataclass(frozen=True)
class Marks:
    """Secrets that cannot occur elsewhere by chance."""

    shared: str
    previous: str
    strangers: str
    source_api: str
    destination_api: str

    @classmethod
    def new(cls) -> "Marks":
        return cls(*(f"{name}-{secrets.token_urlsafe(33)}" for name in cls.__dataclass_fields__))

    @functools.cached_property
    def forms(self) -> list[str]:
        """All forms of the secrets: plain, base64, and the derived keys of those that make a link's authority."""
        plain = [getattr(self, name) for name in self.__dataclass_fields__]
        found = plain + [base64.b64encode(text.encode()).decode().rstrip("=") for text in plain]
        for secret in (self.shared, self.previous, self.strangers):
            found += forms_of_key(secret)
        return [*found, "PRIVATE KEY"]

    def found_in(self, text: str) -> list[str]:
        return [form for form in self.forms if form in text]


def forms_of_key(secret: str) -> list[str]:
    """The forms in which the private key of a link's authority could be written."""
    key = authority_key(key_of(secret))
    scalar = key.private_numbers().private_value
    raw = scalar.to_bytes(32, "big")
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    body = [line for line in pem.splitlines() if not line.startswith("-")]
    return [raw.hex(), raw.hex().upper(), str(scalar), repr(raw)[2:-1], base64.b64encode(raw).decode(), *body]


def new_files(start: float, directory: Path) -> Iterator[Path]:
    """Files below ``directory``, and files in the machine's temporary directories that are newer than ``start``."""
    yield from (path for path in directory.rglob("*") if path.is_file())
    for parent in {path for path in TEMPORARY if path.is_dir()}:
        for path in parent.iterdir():
            with contextlib.suppress(OSError):
                status = path.lstat()
                if status.st_ctime >= start and status.st_uid == os.getuid() and path.is_file():
                    yield path


async def page(port: int, path: str) -> str:
    """The text of a status page; empty if there is none."""
    try:
        reader, writer = await asyncio.open_connection(OWN_ADDRESS, port)
    except ConnectionRefusedError:
        return ""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    text = (await reader.read(-1)).decode()
    writer.close()
    return text


def process_list(pid: int) -> str:
    """The machine's public view of a process and its children; only the owner can read their environment."""
    shown = family(pid)
    assert all(Path(f"/proc/{one.pid}/environ").stat().st_mode & 0o077 == 0 for one in shown)
    return "\n".join(Path(f"/proc/{one.pid}/{name}").read_text() for one in shown for name in ("cmdline", "environ"))


async def failed_start(directory: Path, text: str) -> str:
    """The output of a command for an unusable setenv.sh."""
    env_file = directory / f"unfit-{time.monotonic_ns()}.sh"
    env_file.touch(mode=0o600)
    env_file.write_text(text)
    command = [sys.executable, "-m", "appliance.cli", "source", "--env-file", str(env_file)]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    assert process.returncode == 2
    return said.decode()


def unfit_texts(variables: dict[str, str], marks: Marks) -> list[str]:
    """Versions of setenv.sh, each with one fault near a secret."""
    good = "".join(f"export {name}='{value}'\n" for name, value in variables.items())
    return [
        f"{good}export SHARED_SECRET='{marks.shared[:20]}'\n",
        f"{good}export SHARED_SECRT='{marks.shared}'\n",
        f"{good}export SHARED_SECRET={marks.shared} {marks.previous}\n",
        f"{good}export SHARED_SECRET={marks.shared} '{marks.previous}\n",
        f'{good}export TUNNEL_PORT=none\nexport SOURCE_API_SECRET="{marks.source_api}$HOME`"\n',
        f"{good}export SHARED_SECRET=\nexport SHARED_SECRET_FILE='/nowhere/shared'\n",
    ]


async def everybody_is_here(query):
    return [answer(query, "127.0.0.1")]


async def echoed(shim: int, broker: int) -> bool:
    """True if the broker answers at the address from a destination's shim."""
    (address,) = addresses(await resolve(shim, HOST, address=OWN_ADDRESS))
    return await carrying.echoed(broker, address) == b"x"


async def test_no_secret_is_in_a_log_an_error_a_process_list_a_page_or_a_file(tmp_path):
    marks, start = Marks.new(), time.time()
    status = {name: free_port(OWN_ADDRESS) for name in ("source", "destination", "stranger")}
    async with target_server(echo) as broker, scripted_server(everybody_is_here) as resolver:
        variables = gateway_variables(
            broker,
            free_port(OWN_ADDRESS),
            SHARED_SECRET=marks.shared,
            SOURCE_API_SECRET=marks.source_api,
            DESTINATION_API_SECRET=marks.destination_api,
            TUNNEL_RESOLVER=str(resolver),
            LOG_LEVEL="debug",
        )

        def end(command, name, **changed):
            shim = free_port(OWN_ADDRESS)
            own = {"TUNNEL_STATUS_LISTEN": f"{OWN_ADDRESS}:{status[name]}", "DNS_LISTEN": f"{OWN_ADDRESS}:{shim}"}
            own |= {"TUNNEL_ENDPOINT_NETWORK": f"127.{64 + len(name)}.0.0/16"} | changed
            return shim, gateway_process(command, variables | own, tmp_path)

        _, source = end("source", "source", LOG_FORMAT="json")
        shim, destination = end("destination", "destination", SHARED_SECRET_PREVIOUS=marks.previous)
        strange_shim, stranger = end("destination", "stranger", SHARED_SECRET=marks.strangers)
        async with source as one, destination as two, stranger as three:
            assert await echoed(shim, broker)
            assert not await echoed(strange_shim, broker)
            with contextlib.suppress(ConnectionError):
                reader, writer = await asyncio.open_connection(OWN_ADDRESS, int(variables["TUNNEL_PORT"]))
                writer.write(b"hello\r\n\r\n")
                await reader.read(-1)
                writer.close()
            await three.wait_for_line("tunnel refused", 10)
            shown = [await page(port, path) for port in status.values() for path in ("/health", "/metrics")]
            shown += [process_list(process.pid) for process in (one, two, three)]
        for process in (one, two, three):
            assert "ready" in process.log_file.read_text()
    for unfit in unfit_texts(variables, marks):
        said = await failed_start(tmp_path, unfit)
        assert "appliance source: " in said
        assert marks.shared[:20] not in said
        shown.append(said)
    for text in shown:
        assert marks.found_in(text) == []
    for path in new_files(start, tmp_path):
        if path.suffix == ".sh":
            assert path.stat().st_mode & 0o077 == 0
        else:
            assert marks.found_in(path.read_text("utf-8", "replace")) == [], path


def test_the_search_finds_what_it_looks_for():
    marks = Marks.new()
    for secret in (marks.shared, marks.previous, marks.strangers):
        assert marks.found_in(f"cause={secret!r}")
        assert marks.found_in(f"key={authority_key(key_of(secret)).private_numbers().private_value:064x}")
    assert marks.found_in("-----BEGIN EC PRIVATE KEY-----")
    assert not marks.found_in("tunnel client refused: SHARED_SECRET")


async def test_both_ends_take_the_secret_from_a_file_that_a_variable_of_the_process_names(tmp_path, monkeypatch):
    path = tmp_path / "shared"
    path.touch(mode=0o600)
    path.write_text(secrets.token_urlsafe(33) + "\n")
    monkeypatch.setenv("SHARED_SECRET_FILE", str(path))
    async with target_server(echo) as broker, scripted_server(everybody_is_here) as resolver:
        variables = gateway_variables(broker, free_port(OWN_ADDRESS), TUNNEL_RESOLVER=str(resolver))
        variables |= {"SHARED_SECRET": "", "TUNNEL_STATUS_LISTEN": f"{OWN_ADDRESS}:0"}
        shim = free_port(OWN_ADDRESS)
        own = {"DNS_LISTEN": f"{OWN_ADDRESS}:{shim}", "TUNNEL_ENDPOINT_NETWORK": "127.80.0.0/16"}
        source = gateway_process("source", variables | own, tmp_path)
        destination = gateway_process("destination", variables | own, tmp_path)
        async with source, destination:
            assert await echoed(shim, broker)


async def test_a_command_refuses_settings_that_others_may_read(tmp_path):
    env_file = write_settings(tmp_path / "open.sh", gateway_variables(9092, 15060))
    env_file.chmod(0o644)
    command = [sys.executable, "-m", "appliance.cli", "source", "--env-file", str(env_file)]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    expected = f"appliance source: {env_file}: holds secrets, and others may read it: chmod 600 {env_file}\n"
    assert (process.returncode, said.decode()) == (2, expected)
