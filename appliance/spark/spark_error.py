"""Spark's errors as one line that a user can read."""

import re

_WHERE = re.compile(r"\(TID \d+\) \((\S+) executor \S+\): ")
_TRACEBACK = "Traceback (most recent call last):"
_NO_MODULE = re.compile(r"No module named '?([\w.]+)")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')


def spark_error(text: str) -> str:
    """The line."""
    if found := _NO_MODULE.search(text):
        if found[1].startswith("appliance."):  # another release has other modules
            return f"{_where(text)}it has another release of the appliance: install the same on every host"
        return f"{_where(text)}its Python lacks {found[1]}: start its Spark worker by `appliance spark worker`"
    if found := _NO_PYTHON.search(text):
        return f"{_where(text)}it has no {found[1]}: start its Spark worker by `appliance spark worker`"
    said = _python(text) if _TRACEBACK in text else text.partition("\n: ")[2] or text
    first = said.strip().splitlines()[0] if said.strip() else "Spark does not say why"
    return f"{_where(text)}{first}"


def _where(text: str) -> str:
    found = _WHERE.search(text)
    return f"on {found[1]}: " if found else ""


def _python(text: str) -> str:
    """The text of the innermost exception, ours without its name."""
    trace = re.split(r"\n\s+at ", text.rpartition(_TRACEBACK)[2])[0]
    lines = [line for line in trace.splitlines() if line and not line.startswith(" ")]
    first, *more = lines or [""]
    return "; ".join([re.sub(r"^appliance\.errors\.\w+: ", "", first), *more])
