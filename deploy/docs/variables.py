"""The page of the variables of setenv.sh: the template's headings, and the declarations of the settings."""

import re
from collections.abc import Iterable
from pathlib import Path

from appliance.settings.one_topic import ONE_TOPIC
from appliance.settings.role import Role
from appliance.settings.variable import Variable
from appliance.settings.variables import BY_NAME, ORDER_TABLE
from deploy.docs.markdown import plain

_TEMPLATE = Path(__file__).parents[2] / "setenv.sh.template"
_READERS = {
    Role.SOURCE: "source end",
    Role.DESTINATION: "destination end",
    Role.REPLICATOR: "replicator",
    Role.CONSOLE: "control center",
}

_HEAD = """\
# Variables

Each variable of `setenv.sh`, in the order of `setenv.sh.template`. [Two VMs](../start/two-vms.md#setenvsh)
has the rules of that file. *Read by* names the processes that read it: the two ends of the tunnel, the replicator, the
control center. The doctor and the prepare scripts read all of their VM. A secret may be in a file of its own:
`NAME_FILE` in place of `NAME`.
"""


def page() -> str:
    """The text of docs/reference/variables.md."""
    titles = _titles(_TEMPLATE.read_text())
    parts = {title: [BY_NAME[name] for name, under in titles.items() if under == title] for title in titles.values()}
    sections = "".join(f"\n## {title}\n\n{_table(variables)}" for title, variables in parts.items())
    four = "".join(f"| `{each.name}` | {plain(each.purpose)} | `{ours}` |\n" for ours, each in ONE_TOPIC.items())
    return (
        f"{_HEAD}{sections}\n## One topic, without a tunnel\n\n"
        "Four variables alone copy one topic ([how](../move/migrating.md#what-the-four-variables-mean)).\n\n"
        f"| variable | meaning | stands for |\n|---|---|---|\n{four}"
    )


def _titles(template: str) -> dict[str, str]:
    """The heading above each variable in the template."""
    title, found = "", dict[str, str]()
    for block in template.split("\n\n\n"):
        if heading := re.match(r"\n*# ([A-Z][^.\n(]*?)(?: \(.*)?\n", block):
            title = heading[1]
        found |= dict.fromkeys(re.findall(r"^#?export (\w+)=", block, re.MULTILINE), title)
    return found


def _table(variables: Iterable[Variable[object]]) -> str:
    rows = (f"| `{each.name}` | {_default(each)} | {_read_by(each)} | {plain(each.purpose)} |\n" for each in variables)
    return "| variable | default | read by | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _default(variable: Variable[object]) -> str:
    if variable.required:
        return "required"
    return f"`{variable.default}`" if variable.default else "empty"


def _read_by(variable: Variable[object]) -> str:
    if variable in ORDER_TABLE:
        return "order"
    readers = [name for role, name in _READERS.items() if variable.roles & role]
    return "all" if len(readers) == len(_READERS) else ", ".join(readers) or "prepare scripts"
