"""The choices of an imported link, beside those of MirrorMaker 2 itself by the same file."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from appliance.link.model.naming import Naming
from appliance.migrate.model.mirror_maker import mirror_maker_links
from appliance.migrate.model.properties import read_properties
from appliance.settings.parse import parse
from appliance.settings.role import Role
from testbed.jars import MIRROR_MAKER as JARS
from testbed.jars import classpath, java
from tests.support.imports import MIRROR_MAKER
from tests.support.java_programs import compiled
from tests.support.patience import PATIENCE

NAMES = """
    orders payments orders.eu orders-eu app.replica replicas internal __consumer_offsets __own .hidden connect-sink
    mm2-offset-syncs.B.internal console-consumer-7 audit ordersXeu
"""
BETWEEN = """clusters = A, B, us-east
A.bootstrap.servers = a.example:9092
B.bootstrap.servers = SSL://b.example:9092
us-east.bootstrap.servers = e.example:9092
"""
ONE_WAY = BETWEEN + "A->B.enabled = true\n"
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
OF_OTHERS = ("app.internal", "app-internal", "A.checkpoints.internal")
"""Topics that only newer versions copy, some with any separator but a dot; our links leave them out."""

FILES = {
    "the example": MIRROR_MAKER,
    "defaults": ONE_WAY,
    "further directions": BETWEEN + "B->A.enabled:TRUE\nus-east->A.enabled true \nA->us-east.enabled = no\n",
    "a direction's own": ONE_WAY + "A->B.topics = orders.*,audit\ntopics = payments\ngroups = a.*\n",
    "escapes": ONE_WAY + r"topics = orders\\.eu, \u0061udit ,pay\m" + "\\\n     ents\n! topics = no\n# topics = no\n",
    "nothing excluded": ONE_WAY + "topics.exclude =\ngroups.exclude =\n",
    "nothing chosen": ONE_WAY + "topics =\n",
    "an expression with commas": ONE_WAY + "topics = orders[.,-]eu\ngroups = c.*\n",
    "a separator": ONE_WAY + "replication.policy.separator = _\nB->A.enabled = true\n",
    "identical names": ONE_WAY + IDENTITY,
    "an alias": ONE_WAY + "A->B.source.cluster.alias = legacy\nA.alias = no\nA->B.target.cluster.alias = new\n",
    "a cluster's alias": ONE_WAY + "A.alias = legacy\nsource.cluster.alias = no\nB->A.enabled = true\n",
    "an alias and a direction's separator": ONE_WAY
    + "source.cluster.alias = legacy \nA->B.replication.policy.separator = --\nreplication.policy.separator = _\n"
    + "A.replication.policy.separator = no\n",
    "identical names without any separator": ONE_WAY
    + IDENTITY
    + "source.cluster.alias =\nreplication.policy.separator =\n",
    "a key given twice": ONE_WAY + "topics = payments\ntopics = orders\n",
}


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent / "programs" / "MirrorChoices.java"
    return compiled(source, classpath(JARS), tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="session")
def mirror_makers(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, set[tuple[str, ...]]]:
    """For each file: source, target, name, the copy's name or a dash, and whether a group of that name follows."""
    directory = tmp_path_factory.mktemp("files")
    paths = {name: directory / f"{number}.properties" for number, name in enumerate(FILES)}
    for name, path in paths.items():
        path.write_text(FILES[name])
    jars = os.pathsep.join([classpath(JARS), str(program)])
    command = [java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", jars, "MirrorChoices"]
    command += [*NAMES.split(), *OF_OTHERS, "-", *map(str, paths.values())]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 0, run.stderr
    lines = [tuple(line.split("\t")) for line in run.stdout.splitlines()]
    return {name: {line[1:] for line in lines if line[0] == str(path)} for name, path in paths.items()}


def ours(content: bytes) -> set[tuple[str, ...]]:
    """The same of the imported links."""
    links, _ = mirror_maker_links("f", read_properties("f", content).values)
    found = set()
    for link in links:
        settings = parse(link.variables, Role.REPLICATOR)
        naming = Naming.of(settings)
        for name in (*NAMES.split(), *OF_OTHERS):
            copy = naming.destination(name) if naming.copies(name, internal=False) else "-"
            follows = str(settings.groups.takes(name)).lower()
            found.add((link.source, link.destination, name, copy, follows))
    return found


@pytest.mark.parametrize("file", FILES)
def test_an_imported_link_chooses_and_names_what_mirror_maker_does(
    mirror_makers: Mapping[str, set[tuple[str, ...]]], file: str
) -> None:
    theirs, own = mirror_makers[file], ours(FILES[file].encode())
    assert {choice for choice in own if choice[2] not in OF_OTHERS} == {
        choice for choice in theirs if choice[2] not in OF_OTHERS
    }
    assert {copy for _, _, name, copy, _ in own if name in OF_OTHERS} == {"-"}
