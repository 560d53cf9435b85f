"""The test suites: their subjects, directories and durations."""

from dataclasses import dataclass

TWO_FILES_AT_ONCE = ("--numprocesses", "2", "--dist", "loadfile")
_IN_ORDER = ("--dist", "loadfile", "--no-loadscope-reorder")
"""In the order of the directories: tests that wait for brokers come first, and quick ones fill the processes' ends."""

THREE_FILES_AT_ONCE = ("--numprocesses", "3", *_IN_ORDER)
FIVE_FILES_AT_ONCE = ("--numprocesses", "5", *_IN_ORDER)
SIX_FILES_AT_ONCE = ("--numprocesses", "6", *_IN_ORDER)

TWO_TESTS_AT_ONCE = ("--numprocesses", "2")

PROCESSORS = 2.0
"""Number of processors that the suites' times were measured on."""

EACH_SUBMISSION = ("-m", "not release")
"""pytest's arguments that leave out the tests for a release."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A test suite.

    ``minutes`` were measured on two cores. ``ci_minutes`` are without the tests that are marked ``release``, and were
    measured beside other work; 0 means that all tests are so marked. With ``needs_programs`` it needs more programs
    than Python and Java, and some also root: see tests/support/requirements.py. In CI a suite runs beside others if it
    keeps only a part of the processors ``busy``, on average. One that ``fills`` only computes: it takes the time that
    others leave. ``builds`` is a module that builds programs which the suite needs, once on a machine; it fills, too.
    """

    name: str
    purpose: str
    minutes: float
    ci_minutes: float
    directories: tuple[str, ...]
    options: tuple[str, ...] = ()
    needs_programs: bool = False
    busy: float = PROCESSORS
    fills: bool = False
    builds: str = ""

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
    busy: float = PROCESSORS,
    fills: bool = False,
    builds: str = "",
) -> Suite:
    return Suite(name, purpose, minutes, ci_minutes, (f"tests/{name}",), options, programs, busy, fills, builds)


DEFAULT = Suite(
    "",
    "style, types, unit tests, and tests with at most two plain clusters",
    7,
    6,
    ("tests/real", "tests/unit"),
    SIX_FILES_AT_ONCE,
)
_REAL = Suite("", "tests/real, in CI", 8, 8, ("tests/real",), FIVE_FILES_AT_ONCE, busy=1.5)
_UNIT = Suite("", "tests/unit, in CI", 2, 2, ("tests/unit",), TWO_FILES_AT_ONCE, fills=True)
PARTS = {"tests/real": _REAL, "tests/unit": _UNIT}
"""The default suite's two directories, which CI runs apart: one waits for brokers, and the other computes."""

SUITES = (
    _suite(
        "simulation",
        10,
        3,
        "random histories of crashes and late answers, without a broker",
        *TWO_TESTS_AT_ONCE,
        fills=True,
    ),
    _suite(
        "spark",
        16,
        7,
        "the replicator with its Spark, Spark clusters, Kubernetes",
        *FIVE_FILES_AT_ONCE,
        busy=1.2,
    ),
    _suite(
        "outages",
        4,
        3,
        "brokers that die, move, fall silent or throttle",
        *THREE_FILES_AT_ONCE,
        busy=0.8,
    ),
    _suite(
        "console",
        8,
        7,
        "the control center in a browser, clients of Kafka Connect, Prometheus",
        *TWO_FILES_AT_ONCE,
        programs=True,
        busy=0.6,
    ),
    _suite(
        "start",
        8,
        7,
        "bin/demo, the prepare scripts, Python environments, first starts",
        *TWO_FILES_AT_ONCE,
        busy=0.7,
    ),
    _suite("bench", 12, 2, "the benchmarks' own tests", *TWO_FILES_AT_ONCE, busy=0.6),
    _suite(
        "faults",
        28,
        6,
        "every process and connection killed, cut and stopped; takes --seed N and --soak MINUTES",
    ),
    _suite(
        "mirrormaker",
        5,
        1,
        "MirrorMaker 2 itself: its copies adopted, its settings imported, its Java client",
        *TWO_FILES_AT_ONCE,
        busy=0.4,
    ),
    _suite(
        "upgrade",
        15,
        0,
        "the last release, replaced by this one and back under load; needs this repository's history",
    ),
    _suite("brokers", 4, 1, "Kafka 2.8 to the newest, each as source and as destination", busy=0.6),
    _suite(
        "networks",
        8,
        7,
        "both VPCs as network namespaces, firewalls, other clients; needs root",
        programs=True,
        busy=0.4,
    ),
    _suite(
        "hosts",
        1,
        1,
        "the wheel on a host, systemd's units, completions of shells",
        programs=True,
        busy=0.5,
    ),
    _suite("containers", 14, 11, "both VMs with Docker; needs root", programs=True, busy=0.4),
    _suite(
        "kubernetes",
        8,
        4,
        "the Helm chart on a real node of Kubernetes; needs root and Go",
        programs=True,
        busy=0.8,
        builds="testbed.kubernetes",
    ),
)
DIRECTORIES = tuple(path for suite in (DEFAULT, *SUITES) if not suite.needs_programs for path in suite.directories)
"""The directories that ``-k`` searches: all except suites that need more programs."""
