"""``bin/image build|save|load|provenance``: the image, the same from every build, also as a file."""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from appliance.version import VERSION
from deploy.image.build import CHECKOUT, ImageError, build, docker, revision, size
from deploy.image.bundle import load, pack
from deploy.image.normal import image_id
from deploy.image.provenance import Image, statement, subject

NAME = f"kafka-cloud-replicator:{VERSION}"
WRITTEN = CHECKOUT / "image"
"""The folder of the provenance of what was built here."""


def main(arguments: Sequence[str]) -> int:
    """Run one of the commands; return its exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        parsed.run(parsed)
    except (ImageError, OSError) as error:
        print(f"bin/image {parsed.command}: {error}", file=sys.stderr)
        return 1
    return 0


def _build(parsed: argparse.Namespace) -> None:
    WRITTEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WRITTEN) as directory:
        archive = Path(directory) / "image.tar"
        provenance = build(CHECKOUT, parsed.name, revision(), parsed.build_arg, archive)
        docker("load", "--quiet", "--input", str(archive))
    _provenance_of(parsed.name).write_text(json.dumps(provenance, indent=1) + "\n")
    print(f"{parsed.name} {subject(provenance)} {size(parsed.name) // 1_000_000} MB")
    print(f"its provenance: {_provenance_of(parsed.name)}")


def _save(parsed: argparse.Namespace) -> None:
    written = _provenance_of(parsed.name)
    if not written.exists():
        raise ImageError(f"{parsed.name} was not built here: bin/image build")
    provenance = json.loads(written.read_text())
    with tempfile.TemporaryDirectory(dir=WRITTEN) as directory:
        archive = Path(directory) / "image.tar"
        docker("save", "--output", str(archive), parsed.name)
        if image_id(archive) != subject(provenance):
            raise ImageError(f"{parsed.name} is no longer the image that was built here: bin/image build")
        pack(archive, provenance, parsed.file)
    print(f"{parsed.file}: on the VM, bin/image load {parsed.file.name}")


def _load(parsed: argparse.Namespace) -> None:
    print(f"loaded and checked: {load(parsed.file)}")


def _provenance(parsed: argparse.Namespace) -> None:
    image = Image(parsed.name, parsed.digest, parsed.platform)
    print(json.dumps(statement(CHECKOUT, image, revision(), []), indent=1))


def _tagged(name: str) -> str:
    """A name as Docker completes it: saved without a tag, all images of the name would be in the file."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _provenance_of(name: str) -> Path:
    return WRITTEN / f"{name.replace('/', '_').replace(':', '_')}.provenance.json"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bin/image", description="The image of all containers.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, run, summary in (
        ("build", _build, "build the image, the same bit for bit each time"),
        ("save", _save, "write the built image to a file, with its provenance and checksums"),
        ("load", _load, "check a file that was saved, and load its image into Docker"),
        (
            "provenance",
            _provenance,
            "print the provenance of an image that another program built from here",
        ),
    ):
        command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        command.set_defaults(run=run)
        if name != "load":
            named = str if name == "provenance" else _tagged
            help_text = "the image's name (default: %(default)s)"
            command.add_argument("--name", type=named, default=NAME, help=help_text)
        if name == "build":
            command.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE", help="as Docker's")
        elif name == "provenance":
            command.add_argument("--digest", required=True, help="the digest of the image")
            command.add_argument("--platform", required=True, help="linux/amd64 or linux/arm64")
        else:
            command.add_argument("file", type=Path, metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
