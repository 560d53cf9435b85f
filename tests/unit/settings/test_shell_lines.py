"""The grammar of setenv.sh, compared with examples and with real shells."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.settings.shell_lines import ENDS_AS_ON_WINDOWS, Line, quoted, read_lines

NAMES = ("LANES", "TASKS", "SHARED_SECRET", "SOURCE_API_SECRET")
SHELLS = (("sh",), ("bash",), ("bash", "--posix"))

SHOW = '. "$1" || exit 9; shift; for name in "$@"; do eval "printf \'%s=%s\\\\0\' $name \\"\\$$name\\""; done'


def read_by(shell: tuple[str, ...], text: str, names: set[str], directory: Path) -> dict[str, str]:
    """The variables of a shell after it has sourced the text; its path has no programs."""
    file = directory / "setenv.sh"
    file.write_bytes(text.encode())
    command = ["/usr/bin/env", "-i", "PATH=/nowhere", "LC_ALL=C.UTF-8", f"/bin/{shell[0]}", *shell[1:]]
    command += ["-c", SHOW, "shell", str(file), *sorted(names)]
    shown = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (shown.returncode, shown.stderr) == (0, b""), text
    assert list(directory.iterdir()) == [file], text
    pairs = (entry.partition("=") for entry in shown.stdout.decode().split("\0")[:-1])
    return {name: value for name, _, value in pairs}


def one(line: str) -> Line:
    [read] = read_lines(line)
    return read


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("export SHARED_SECRET='pa$$w0rd'", "pa$$w0rd"),
        ("export SHARED_SECRET='${HOME} $(id) `id`'", "${HOME} $(id) `id`"),
        ("export SHARED_SECRET='a#b' # a comment", "a#b"),
        ("export SHARED_SECRET=a/b+c==", "a/b+c=="),
        ('export SHARED_SECRET="it\'s ~ * ! ; & | <x> (y)"', "it's ~ * ! ; & | <x> (y)"),
        (r'export SHARED_SECRET="a \"b\" \\ \$c \`d\`"', r'a "b" \ $c `d`'),
        (r"export SHARED_SECRET='it'\''s'", "it's"),
        ("""export SHARED_SECRET=a'b'"c"d""", "abcd"),
        (r"export SHARED_SECRET='back\slash\\'", r"back\slash\\"),
        ("SHARED_SECRET=plain", "plain"),
        ("\texport \t SHARED_SECRET='x'  \t", "x"),
        ("export SHARED_SECRET=", ""),
        ("export SHARED_SECRET= # none", ""),
        ("export SHARED_SECRET='zwölf\u2028\x85'", "zwölf\u2028\x85"),
    ],
)
def test_a_line_of_the_grammar_reads_alike_in_every_shell(tmp_path: Path, line: str, value: str) -> None:
    assert one(line) == Line(1, "SHARED_SECRET", value)
    for shell in SHELLS:
        assert read_by(shell, line, {"SHARED_SECRET"}, tmp_path) == {"SHARED_SECRET": value}


@pytest.mark.parametrize(
    "value",
    ['"$(cat /run/x)"', '"${A:?}"', "$X", "a$X", "`cat x`", '"`cat x`"', "$'a\\n'", '$"a"', "$((1+1))", '"pa$$"'],
)
def test_a_value_that_a_shell_would_expand_is_refused(value: str) -> None:
    line = one(f"export SHARED_SECRET={value}")
    assert line.expands
    expected = "expected export SHARED_SECRET='value' in single quotes: outside of them a shell puts something else "
    assert line.fault.startswith(expected)


@pytest.mark.parametrize(
    "value",
    [
        *("~", "~root", "a:~", "a;b", "a&", "a|b", "a>b", "a<b", "(a)"),
        *("a*", "a?", "[a]", "{a,b}", "a!", "^a", "a#b", "#a"),
        *(r"a\b", r"\$", '"a\\n"', "3 4", "'3' 4", "a'b' c", "'a'#b", "zwölf", "a\u00a0b"),
    ],
)
def test_a_line_that_a_shell_would_read_otherwise_is_refused(value: str) -> None:
    line = one(f"export LANES={value}")
    assert line.fault.startswith("expected export LANES='value' in single quotes: ")
    assert not line.expands


@pytest.mark.parametrize("value", ["'3", '"3', "it's", "'a'\"b", "'a'\\''b"])
def test_a_quote_that_is_not_closed_on_its_line_is_refused_there(value: str) -> None:
    opened, good = read_lines(f"export LANES={value}\nexport TASKS='1'\n")
    assert (opened.number, opened.name, opened.value) == (1, "LANES", "")
    assert opened.fault.startswith("expected export LANES='value' on one line: its quote is not closed")
    assert good == Line(2, "TASKS", "1")


@pytest.mark.parametrize(
    "line",
    [
        *("export LANES", "export LANES = 3", "LANES =3", "= 3", "if true; then", "set -a", ". other.sh", "exit"),
        *("LANES+=3", "LANES[0]=3", "3LANES=1", "LÄNES=1", "export -n LANES=1", "\ufeffexport LANES=1", "\xa0LANES=1"),
        *("readonly LANES=3", "export\u2003LANES=3", "exportLANES 3", "\\\\", "\x0bLANES=1"),
    ],
)
def test_a_line_that_is_no_assignment_is_refused(line: str) -> None:
    assert one(line).fault.partition(": here is U+")[0] == "expected export NAME='value'"


@pytest.mark.parametrize("value", ["'a\x00b'", "'a\x01b'", "'a\rb'", "a\x7f", "'\x1b[2J'"])
def test_a_control_character_is_refused(value: str) -> None:
    assert one(f"LANES={value}").fault.startswith(
        "expected export LANES='value' without control characters: here is U+"
    )


def test_a_line_that_ends_as_on_windows_is_refused() -> None:
    lines = read_lines("# one\r\nexport LANES='1'\r\n\r\nexport TASKS='2'\n")
    assert [(line.number, line.fault) for line in lines] == [(2, ENDS_AS_ON_WINDOWS), (3, ENDS_AS_ON_WINDOWS), (4, "")]


TEXT = st.characters(exclude_categories=["Cs"])
PIECES = st.one_of(
    st.text(st.sampled_from("ab_/.:=@%+,-"), min_size=1, max_size=4),
    st.text(TEXT, max_size=6).map(lambda text: f"'{text}'"),
    st.text(TEXT, max_size=6).map(lambda text: f'"{text}"'),
    st.text(st.sampled_from("ab '\"\\$`~#!*"), max_size=6).map(lambda text: f'"{text}"'),
    st.text(st.sampled_from("ab'\"\\$`~;&|<>(){}[]*?!^# \t\r=ö\x85\xa0\u2028\x01\x7f"), min_size=1, max_size=3),
    st.sampled_from([r"\'", r"\"", r"\\", "$A", "$(A)", "${A:=b}", "`A`", " #", "#", "~", "''", '""']),
)
LINES = st.one_of(
    st.builds(
        "{}{}{}{}{}".format,
        st.sampled_from(["", "export ", " \texport\t ", "export"]),
        st.sampled_from(NAMES),
        st.sampled_from(["=", "=", "=", "=", " =", "= ", "+="]),
        st.lists(PIECES, max_size=4).map("".join),
        st.sampled_from(["", "", " ", " # it's", "\t#$(A)", "#", "\r"]),
    ),
    st.text(st.sampled_from("export LANES='\"\\$`# \t=1"), max_size=20),
    st.sampled_from(["", "# $(A) 'b", "   "]),
)


@given(lines=st.lists(LINES, max_size=6))
def test_every_shell_reads_accepted_text_to_the_same_values_and_other_text_is_refused_by_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    """Only accepted lines go to a shell."""
    lines = "\n".join(lines).split("\n")
    read = list(read_lines("\n".join(lines)))
    refused = {line.number for line in read if line.fault}
    accepted = [line for line in read if line.number not in refused]
    assert all(1 <= number <= len(lines) for number in refused)
    assert all(line.name and line.value is not None for line in accepted)
    expected = {str(line.name): line.value for line in accepted if line.name in NAMES}
    text = "\n".join(line for number, line in enumerate(lines, 1) if number not in refused)
    for shell in SHELLS:
        directory = tmp_path_factory.mktemp("shell")
        assert read_by(shell, text, set(expected), directory) == expected


@given(st.text(TEXT))
def test_a_value_is_quoted_so_that_every_shell_reads_it_as_it_stands(
    tmp_path_factory: pytest.TempPathFactory, value: str
) -> None:
    try:
        text = f"export SHARED_SECRET={quoted(value)}\n"
    except ValueError:
        assert set(value) & {chr(number) for number in [*range(9), *range(10, 32), 127]}
        return
    assert one(text.rstrip("\n")) == Line(1, "SHARED_SECRET", value)
    for shell in SHELLS:
        directory = tmp_path_factory.mktemp("shell")
        assert read_by(shell, text, {"SHARED_SECRET"}, directory) == {"SHARED_SECRET": value}
