"""``bin/appliance support-bundle``: gathers all parts at once, masks them, writes one file, and says what is in it."""

import argparse
import asyncio
import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from appliance.clock import utc_now
from appliance.errors import ApplianceError, Interrupted
from appliance.listing import number
from appliance.output import say, say_json
from appliance.runtime.background import unless_stopped
from appliance.runtime.command import Command, add_json
from appliance.timestamps import utc
from appliance.version import VERSION
from deploy.support.archive import packed, written
from deploy.support.masking import Masking
from deploy.support.parts import (
    Part,
    compose_parts,
    containers_here,
    environment_of,
    is_prepared,
    log_part,
    process_parts,
)
from deploy.support.secrets import KnownSettings, known_settings, named_like_secrets

_STDOUT = Path("-")
_SIDES = ("source", "destination", "order")
_REMARK_MAX = 2000
"""Characters of a remark, counted once it is masked."""

_EXPLANATION = """\
Masked: every secret of the settings, in each form in which a text may have it, and what looks like a password, a token
or a private key. Not masked: names of hosts, topics, groups and users, addresses, offsets, the SQL. Look at it before
you send it.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the bundle, and a line about it."""

    file: str
    content: bytes
    remark: str = ""

    @property
    def line(self) -> str:
        """The line in the bundle and on the terminal."""
        size = f"{len(self.content):,} bytes" if self.content else "not there"
        return f"{self.file}: {size}" + (f" ({self.remark})" if self.remark else "")


@dataclass(frozen=True, slots=True)
class _Gathered:
    """The parts, not yet masked, and the secrets that were met on the way."""

    entries: list[Entry] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)


async def _support_bundle(parsed: argparse.Namespace, stopping: asyncio.Event) -> None:
    """Gather and write; a stop before the end leaves nothing behind."""
    if parsed.output != _STDOUT and not os.access(parsed.output, os.W_OK | os.X_OK):
        raise ApplianceError(f"{parsed.output}: expected a folder that this user may write to: see --output")
    known = known_settings(parsed.env_file, os.environ)
    gathered = await unless_stopped(stopping, _gathered(parsed, known))
    if gathered is None:
        raise Interrupted("stopped before the end: there is no bundle")
    now, masking = utc_now(), Masking(known.secrets | gathered.secrets)
    entries = [Entry("settings.txt", known.shown.encode(), "; ".join(known.unread)), *gathered.entries]
    masked = [Entry(each.file, masking.masked(each.content), _text(masking, each.remark)) for each in entries]
    head = f"kafka-cloud-replicator {VERSION}, {now.isoformat(timespec='seconds')}"
    index = "\n".join([head, "", *(each.line for each in masked), "", _EXPLANATION])
    files = {"README.txt": index.encode()} | {each.file: each.content for each in masked if each.content}
    name, seconds = f"support-{_link_name()}-{now:%Y%m%dT%H%M%SZ}", int(now.timestamp())
    if parsed.output == _STDOUT:
        packed(name, files, sys.stdout.buffer, seconds)
        sys.stdout.buffer.flush()
    else:
        file = await asyncio.to_thread(written, parsed.output, name, files, seconds)
        if parsed.json:
            parts = [{"file": each.file, "bytes": len(each.content), "remark": each.remark or None} for each in masked]
            told = {"bundle": str(file), "release": VERSION, "at": utc(now.timestamp()), "masked": masking.count}
            say_json(json.dumps({**told, "files": parts}, indent=2))
        else:
            say(*index.splitlines(), f"{number(masking.count)} places were masked by a known secret.")
            say(f"The bundle is {file}")


async def _gathered(parsed: argparse.Namespace, known: KnownSettings) -> _Gathered:
    """All parts, which run at once, and the logs that were given."""
    if is_prepared(Path()):
        no_log, containers = "no container of the link is there, or Docker does not answer", await containers_here()
        parts, secrets = await compose_parts(containers), named_like_secrets(await environment_of(containers))
    else:
        no_log, parts = "give one with --logs FILE", [*process_parts(parsed.env_file, parsed.side, known.values)]
        secrets = frozenset()
    parts = [*(log_part(number, str(log)) for number, log in enumerate(parsed.logs, 1)), *parts]
    absent = [] if any(part.file.startswith("log-") for part in parts) else [Entry("log-1.txt", b"", no_log)]
    return _Gathered([*absent, *await asyncio.gather(*map(_entry, parts))], secrets)


async def _entry(part: Part) -> Entry:
    output = await part.output()
    return Entry(part.file, output.text, output.fault)


def _text(masking: Masking, text: str) -> str:
    masked = masking.masked(text.encode("utf-8", "replace")).decode("utf-8", "replace")
    return masked.replace("\n", " ")[:_REMARK_MAX]


def _link_name() -> str:
    """The folder's name, which is that of the link."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", Path.cwd().name) or "link"


def _add_options(command: argparse.ArgumentParser) -> None:
    add_json(command)
    command.add_argument(
        "--output",
        type=Path,
        default=Path(),
        metavar="DIRECTORY",
        help="where the file is written (default: here); - writes it to stdout, and says nothing",
    )
    command.add_argument(
        "--logs",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a log, of which the last hour is taken; - is stdin; repeatable. Compose's logs are there anyway",
    )
    command.add_argument(
        "--side", choices=_SIDES, default="destination", help="this VM, where no Compose tells (default: destination)"
    )


SUPPORT_BUNDLE = Command(
    "Writes one file for those who help: settings, status, metrics, the doctor's diagnosis, an hour of logs and "
    "versions, without secrets. It works while everything is down: what could not be had is named there and here. It "
    "sends nothing anywhere.",
    _support_bundle,
    _add_options,
)
