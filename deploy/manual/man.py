"""The page ``appliance(1)`` in the language of man."""

import re
from collections.abc import Iterator, Sequence

from appliance.version import VERSION
from deploy.manual.examples import EXAMPLES, is_of
from deploy.manual.pages import CommandPage, Option

_EXIT = (
    ("0", "Done, or nothing to do."),
    ("1", "Failed, refused, behind or stopped."),
    ("2", "Bad usage or settings, or no such topic."),
    ("130", "Ended by Ctrl-C before its end; 143 by SIGTERM, 141 by a closed pipe."),
)


def man(pages: Sequence[CommandPage]) -> str:
    """The whole page."""
    whole, *commands = pages
    first = whole.description.partition("\n\n")[0]
    lines = [
        f'.TH APPLIANCE 1 "" "kafka-cloud-replicator {VERSION}" "User Commands"',
        ".SH NAME",
        r"appliance, kafka\-cloud\-replicator \- copy Kafka topics between two networks, exactly once",
        ".SH SYNOPSIS",
        r".B appliance",
        r".I COMMAND",
        r"[\fIOPTION\fR...]",
        ".SH DESCRIPTION",
        *map(_text, first.splitlines()),
        ".SH COMMANDS",
        *(line for page in commands for line in _command(page)),
        ".SH EXIT STATUS",
        *(line for code, meaning in _EXIT for line in (".TP", f".B {code}", _text(meaning))),
        ".SH FILES",
        ".TP",
        ".I setenv.sh",
        "The settings, in the current directory, unless they are in the process environment.",
    ]
    return "\n".join(lines) + "\n"


def _command(page: CommandPage) -> Iterator[str]:
    name = " ".join(page.words)
    yield from (f".SS {_text(name)}", _text(page.description or page.summary))
    for option in page.options:
        yield from (".TP", _head(option), _text(option.help))
    for words, about in EXAMPLES.items():
        if is_of(words, name) and not page.below:
            yield from (".PP", f"{_text(about)}:", ".br", f".B {_text(f'appliance {words}')}")


def _head(option: Option) -> str:
    names = ", ".join(rf"\fB{_text(name)}\fR" for name in option.names)
    value = "|".join(option.values) or option.value
    return " ".join(filter(None, (names, rf"\fI{_text(value)}\fR" if value else "")))


def _text(text: str) -> str:
    """Plain text: a hyphen is one, and no line begins a request."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^(?=[.'])", r"\\&", escaped)
