"""``appliance import``: writes a folder with setenv.sh for each link, and lists what becomes of each key."""

import argparse
import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from appliance.errors import SettingsError
from appliance.migrate.model.confluent_replicator import replicator_link
from appliance.migrate.model.link import ImportedLink, setenv_text
from appliance.migrate.model.mirror_maker import links_of_either
from appliance.migrate.model.properties import Properties, read_connector
from appliance.migrate.model.verdict import Outcome, Verdict
from appliance.output import say, say_json
from appliance.runtime.command import Command, add_json
from appliance.settings.parse import parse
from appliance.settings.role import EVERY_ROLE, Role
from appliance.settings.secret import new_secret
from appliance.settings.values import Route

_FILE_MAX = 2**24
"""Largest file that is read, in bytes."""

_NEXT = """\
Next, for each folder: fill in its setenv.sh, and stop the program that copies now. Then copy the file into a clone of
this repository that has the folder's name, on both VMs, and run the prepare scripts. With SOURCE_ROUTE='direct' one VM
that reaches both clusters suffices: bin/prepare_dest_config.sh, or bin/appliance replicate --env-file FOLDER/setenv.sh
"""
_IN_PLACE = """\
`appliance adopt mm2` goes on in the topics that MirrorMaker 2 has filled, on the VM, before the replicator starts:
docker-compose up -d gateway && docker-compose run --rm replicator appliance adopt mm2 --dry-run
"""


def _options(command: argparse.ArgumentParser) -> None:
    programs = command.add_subparsers(dest="program", required=True, metavar="PROGRAM")
    mirror_maker = programs.add_parser("mm2", help="MirrorMaker 2: mm2.properties, or its source connector's JSON")
    replicator = programs.add_parser("replicator", help="Confluent Replicator: the connector's JSON or properties")
    for program in (mirror_maker, replicator):
        program.add_argument("file", type=Path, metavar="FILE", help="its settings")
        add_json(program)
        program.add_argument(
            "--out",
            type=Path,
            default=Path(),
            metavar="DIRECTORY",
            help="where the links' folders are made (default: the current directory)",
        )
    replicator.add_argument(
        "--source",
        default="",
        metavar="NAME",
        help="the source cluster's name (default: the one in topic.rename.format, else source)",
    )
    replicator.add_argument(
        "--destination",
        default="destination",
        metavar="NAME",
        help="the destination cluster's name (default: destination)",
    )


async def _import(parsed: argparse.Namespace, _: asyncio.Event) -> int:
    """Write the folders and print the outcomes."""
    name, origin = str(parsed.file), "MirrorMaker 2"
    properties = read_connector(name, _content(parsed.file))
    if parsed.program == "mm2":
        links, outcomes = links_of_either(name, properties.values)
    else:
        origin = "Confluent Replicator"
        link, outcomes = replicator_link(name, properties.values, parsed.source, parsed.destination)
        links = (link,)
    faults = {link.folder: _faults(link) for link in links}
    texts = {link.folder: setenv_text(_with_secret(link), origin, _missing(faults[link.folder])) for link in links}
    write_folders(parsed.out, texts)
    if parsed.json:
        say_json(json.dumps(_document(parsed.out, links, faults, outcomes), indent=2))
        return 0
    following = _NEXT + _IN_PLACE if parsed.program == "mm2" else _NEXT
    say(*_links(parsed.out, links, faults), *_outcomes(properties, outcomes), "", *following.splitlines())
    return 0


def _document(
    out: Path, links: Sequence[ImportedLink], faults: Mapping[str, Sequence[str]], outcomes: Sequence[Outcome]
) -> dict[str, object]:
    """The JSON object: the links, and the outcome for each key; it holds no value of the file."""
    ends = [{"source": link.source, "destination": link.destination} for link in links]
    made = [{"file": str(out / link.folder / SETTINGS), "faults": [*faults[link.folder]]} for link in links]
    return {"links": [a | b for a, b in zip(ends, made, strict=True)], "keys": [*map(asdict, outcomes)]}


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(_FILE_MAX + 1)
    except OSError as error:
        raise SettingsError([f"{file}: {(error.strerror or 'not readable').lower()}"]) from error
    if len(content) > _FILE_MAX:
        raise SettingsError([f"{file}: expected at most {_FILE_MAX} bytes"])
    return content


def _with_secret(link: ImportedLink) -> ImportedLink:
    """The link with a secret of its own for its tunnel, if it has one."""
    if link.route is Route.DIRECT:
        return link
    return link.with_variables({"SHARED_SECRET": new_secret(link.folder)})


def _faults(link: ImportedLink) -> tuple[str, ...]:
    """The faults that the appliance would still find in these settings."""
    roles = Role.REPLICATOR | Role.CONSOLE if link.route is Route.DIRECT else EVERY_ROLE
    try:
        parse(_with_secret(link).variables, roles)
    except SettingsError as error:
        return error.faults
    return ()


def _missing(faults: Iterable[str]) -> set[str]:
    return {fault.partition(":")[0] for fault in faults if ": missing: " in fault}


def _links(out: Path, links: Sequence[ImportedLink], faults: dict[str, tuple[str, ...]]) -> Iterable[str]:
    for link in links:
        yield f"{out / link.folder / SETTINGS}: the link from {link.source} to {link.destination}"
        its_faults = faults[link.folder]
        yield from (["  to fill in or to change:", *(f"    {fault}" for fault in its_faults)] if its_faults else [])


def _outcomes(properties: Properties, outcomes: Sequence[Outcome]) -> Iterable[str]:
    for verdict in Verdict:
        lines = [f"  {outcome}" for outcome in outcomes if outcome.verdict is verdict]
        yield from (["", f"{verdict.capitalize()}:", *lines] if lines else [])
    for key in properties.repeated:
        yield f"  {key}: given more than once, of which the last counts, as in Java"


IMPORT = Command(
    "Reads the settings of another program that copies topics, and writes a folder with setenv.sh for each link. Every "
    "key of the file is listed: carried over, with nothing to set, or not carried over, with the reason. Secrets are "
    "not printed. Folders that exist are not overwritten, and nothing is changed in any cluster.",
    _import,
    _options,
)


SETTINGS = "setenv.sh"


def write_folders(out: Path, folders: Mapping[str, str]) -> None:
    """Write the text of each folder's setenv.sh, readable for its owner alone."""
    existing = [out / folder for folder in folders if os.path.lexists(out / folder)]
    if existing:
        cure = "exists, and is not overwritten: remove it, or choose another --out"
        raise SettingsError([f"{path}: {cure}" for path in existing])
    for folder, text in folders.items():
        try:
            out.mkdir(parents=True, exist_ok=True)
            _write(out, folder, text)
        except OSError as error:
            raise SettingsError([f"{out / folder}: cannot be written: {error.strerror}"]) from error


def _write(out: Path, folder: str, text: str) -> None:
    new = Path(tempfile.mkdtemp(dir=out, prefix=f".{folder}-"))
    try:
        with open(os.open(new / SETTINGS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A folder that has come meanwhile has content, and then this fails.
        new.rename(out / folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
