"""dig and its output.

The output of a reply begins with these lines. The lines of a section follow its heading, up to an empty line::

    ;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 4711
    ;; flags: qr aa rd ra; QUERY: 1, ANSWER: 1, AUTHORITY: 0, ADDITIONAL: 1
    ; EDNS: version: 0, flags:; udp: 1232
"""

import re
from dataclasses import dataclass

from tests.support.namespace import Namespace


@dataclass(frozen=True, slots=True)
class Reply:
    """A DNS client's result. ``answers`` are ``name class type data``; ``edns`` is the offered size, or None."""

    status: str
    flags: frozenset[str]
    question: str
    answers: frozenset[str]
    edns: int | None

    @property
    def addresses(self) -> list[str]:
        """The data of its answers."""
        return sorted(answer.rpartition(" ")[2] for answer in self.answers)


def dig(machine: Namespace, *arguments: str) -> Reply:
    """Ask once, with dig's own arguments.

    Raises:
        RuntimeError: there was no reply.
    """
    return parsed(machine.say("dig", "+nocookie", "+tries=1", "+time=8", *arguments))


def parsed(said: str) -> Reply:
    """The last reply that dig printed."""
    _, _, last = said.rpartition(";; Got answer:")
    edns = re.search(r"; EDNS: .* udp: (\d+)", last)
    (question,) = _section(last, "QUESTION") or [""]
    return Reply(
        _field(r"status: (\w+)", last),
        frozenset(_field(r"flags: ([^;]*);", last).split()),
        " ".join(question.removeprefix(";").split()),
        frozenset(_without_ttl(line) for line in _section(last, "ANSWER")),
        int(edns[1]) if edns else None,
    )


def _field(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found, text
    return found[1]


def _section(text: str, name: str) -> list[str]:
    _, heading, after = text.partition(f";; {name} SECTION:\n")
    return after.split("\n\n")[0].splitlines() if heading else []


def _without_ttl(line: str) -> str:
    name, _ttl, *rest = line.split()
    return " ".join([name, *rest])
