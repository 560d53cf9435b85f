"""The test suites: their subjects, directories and durations."""

import enum
from dataclasses import dataclass

TWO_FILES_AT_ONCE = ("--numprocesses", "2", "--dist", "loadfile")
_IN_ORDER = ("--dist", "loadfile", "--no-loadscope-reorder")
"""In the order of the directories: tests that wait for brokers come first, and quick ones fill the processes' ends."""

THREE_FILES_AT_ONCE = ("--numprocesses", "3", *_IN_ORDER)
FIVE_FILES_AT_ONCE = ("--numprocesses", "5", *_IN_ORDER)
SIX_FILES_AT_ONCE = ("--numprocesses", "6", *_IN_ORDER)

TWO_TESTS_AT_ONCE = ("--numprocesses", "2")


EACH_SUBMISSION = ("-m", "not release")
"""pytest's arguments that leave out the tests for a release."""


class Load(enum.Enum):
    """The part of two processors that a step keeps busy, and so its company in CI."""

    ONE = "computes on one: runs beside another such step"
    WHOLE = "runs alone"
    WAITS = "runs beside another such suite"
    SLEEPS = "runs beside one that fills the time, and no other"
    FILLS = "only computes: runs beside one that sleeps, at the lowest priority"


@dataclass(frozen=True, slots=True)
class Suite:
    """A test suite.

    ``minutes`` were measured on two cores. ``ci_minutes`` are without the tests that are marked ``release``, and were
    measured beside other work; 0 means that all tests are so marked. With ``needs_programs`` it needs more programs
    than Python and Java, and some also root: see tests/support/requirements.py.
    """

    name: str
    purpose: str
    minutes: float
    ci_minutes: float
    directories: tuple[str, ...]
    options: tuple[str, ...] = ()
    needs_programs: bool = False
    load: Load = Load.WHOLE

    @property
    def flag(self) -> str:
        """The argument of bin/test that selects this suite; empty for the default suite."""
        return f"--{self.name}" if self.name else ""


def _suite(
    name: str,
    minutes: float,
    ci_minutes: float,
    purpose: str,
    *options: str,
    programs: bool = False,
    load: Load = Load.WHOLE,
) -> Suite:
    return Suite(name, purpose, minutes, ci_minutes, (f"tests/{name}",), options, programs, load)


DEFAULT = Suite(
    "",
    "style, types, unit tests, and tests with at most two plain clusters",
    16,
    16,
    ("tests/real", "tests/unit"),
    SIX_FILES_AT_ONCE,
)
SUITES = (
    _suite(
        "simulation",
        10,
        3,
        "random histories of crashes and late answers, without a broker",
        *TWO_TESTS_AT_ONCE,
        load=Load.FILLS,
    ),
    _suite(
        "spark",
        16,
        7,
        "the replicator with its Spark, Spark clusters, Kubernetes",
        *FIVE_FILES_AT_ONCE,
    ),
    _suite(
        "outages",
        4,
        3,
        "brokers that die, move, fall silent or throttle",
        *THREE_FILES_AT_ONCE,
    ),
    _suite(
        "console",
        8,
        7,
        "the control center in a browser, clients of Kafka Connect, Prometheus",
        *TWO_FILES_AT_ONCE,
        programs=True,
        load=Load.WAITS,
    ),
    _suite(
        "start",
        8,
        7,
        "bin/demo, the prepare scripts, Python environments, first starts",
        *TWO_FILES_AT_ONCE,
        load=Load.WAITS,
    ),
    _suite("bench", 12, 2, "the benchmarks' own tests", *TWO_FILES_AT_ONCE, load=Load.WAITS),
    _suite(
        "faults",
        20,
        5,
        "every process and connection killed, cut and stopped; takes --seed N and --soak MINUTES",
        load=Load.SLEEPS,
    ),
    _suite(
        "mirrormaker",
        5,
        1,
        "MirrorMaker 2 itself: its copies adopted, its settings imported, its Java client",
        *TWO_FILES_AT_ONCE,
        load=Load.WAITS,
    ),
    _suite("brokers", 4, 1, "Kafka 2.8 to the newest, each as source and as destination", load=Load.WAITS),
    _suite(
        "networks",
        8,
        7,
        "both VPCs as network namespaces, firewalls, other clients; needs root",
        programs=True,
        load=Load.WAITS,
    ),
    _suite("containers", 14, 11, "both VMs with Docker; needs root", programs=True, load=Load.WAITS),
)
DIRECTORIES = tuple(path for suite in (DEFAULT, *SUITES) if not suite.needs_programs for path in suite.directories)
"""The directories that ``-k`` searches: all except suites that need more programs."""
