"""The output of the prepare scripts, as plain text."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from appliance.program import quoted
from appliance.settings.values import Route, Settings, Side
from deploy.prepare.preparation import Preparation
from deploy.prepare.writing import Outcome
from deploy.render.firewall import FORMATS, Rule
from deploy.render.vm import PortMapping

_INDENT = "  "
_PAGES = {
    "CONSOLE_LISTEN": "the replicator (/status, /metrics):",
    "TUNNEL_STATUS_LISTEN": "the tunnel's end (/metrics):",
    "CONTROL_CENTER_LISTEN": "the control center, for a browser:",
}
_ORDER_PAGES = _PAGES | {"CONSOLE_LISTEN": "the order (/status, /metrics):"}


def heading(settings: Settings, machine: Side) -> str:
    """The heading: the link and the VM."""
    if settings.source.member:
        return f"Order {settings.tunnel.link}, the VM beside {settings.source.place}"
    return f"Link {settings.tunnel.link}, {machine} VM{', without a tunnel' if settings.route is Route.DIRECT else ''}"


def name(settings: Settings, machine: Side) -> str:
    """The VM's name in the rules: its side of the link, or the id of its cluster in an order."""
    return settings.source.member.id if settings.source.member else machine


def warnings(lines: Sequence[str]) -> str:
    """The section of warnings; empty when there are none."""
    return _section("Warnings", lines) + "\n" if lines else ""


def written(outcomes: Sequence[Outcome], *, dry: bool) -> str:
    """Each file with its outcome and its changes."""
    title = "Files, none of them written" if dry else "Files"
    if not any(outcome.changed for outcome in outcomes):
        title = "Files: nothing has changed"
    rows = [(outcome.path, f"{outcome.mode:04o}", outcome.state) for outcome in outcomes]
    lines = [line for outcome in outcomes for line in outcome.lines]
    return _section(title, _aligned(rows) + ([""] if lines else []) + lines)


def firewall(rules: Sequence[Rule], machine: str, width: int) -> str:
    """The rules of all VMs as a table, or where it is too wide in lines, with this VM's rules marked."""
    head = ("", "machine", "direction", "from", "to", "protocol", "port", "across VPCs", "why")
    legend = f"* to be opened for this VM; as commands: --firewall {'|'.join(FORMATS)}"
    rows = [_row(rule, machine) for rule in rules]
    lines = _aligned([head, *rows])
    if len(_INDENT) + max(map(len, lines)) > width:
        lines = [line for row in rows for line in _in_lines(row, width - len(_INDENT))]
    return _section("Firewall rules", [*lines, "", *textwrap.wrap(legend, width - len(_INDENT))])


def _in_lines(row: Sequence[str], width: int) -> list[str]:
    mark, own, direction, source, to, protocol, ports, across, reason = row
    within = "across VPCs" if across == "yes" else "within a VPC"
    text = f"{own}, {direction}: from {source} to {to}, {protocol} {ports}, {within}: {reason}"
    return textwrap.wrap(text, width, initial_indent=mark.ljust(2), subsequent_indent=" " * 4, break_on_hyphens=False)


def _row(rule: Rule, machine: str) -> tuple[str, ...]:
    own = f"{rule.machine} VM"
    ends = (rule.peer.name, own) if rule.inbound else (own, rule.peer.name)
    direction, across = "inbound" if rule.inbound else "outbound", "yes" if rule.across else "no"
    return "*" if rule.machine == machine else "", own, direction, *ends, "TCP", rule.ports, across, rule.reason


def what_next(compose: str, prepared: Preparation, other: tuple[str, str], notes: Sequence[str]) -> str:
    """The next command, the pages of the link, the task on the ``other`` VM, and missing programs."""
    tls = bool(prepared.settings.control_center.files)
    titles = _ORDER_PAGES if prepared.settings.source.member else _PAGES
    pages = [(titles[one.variable], _call(one, tls)) for one in prepared.port_mappings if one.variable in titles]
    units = [
        (
            "once, so that a reboot starts it too" + (", if this user may use Docker then:" if notes else ":"),
            # A copy, because what root's systemd runs must not be a file that this user may change.
            f"sudo install -m 644 {quoted(str(Path(file.path).absolute()))} /etc/systemd/system/ && "
            f"sudo systemctl enable {quoted(Path(file.path).name)}",
        )
        for file in prepared.files
        if file.path.endswith(".service")
    ]
    tested = () if prepared.settings.source.member else (("tests of the whole path:", f"{compose} run --rm doctor"),)
    missing = [("missing for that:", note) for note in notes]
    up = "up -d --remove-orphans" if prepared.before - prepared.services else "up -d"
    return _section("Next", [f"{compose} {up}", "", *_aligned([*missing, *pages, *tested, *units, other])])


def _call(page: PortMapping, tls: bool) -> str:
    if page.variable == "CONTROL_CENTER_LISTEN":
        return f"https://{page.at}/" if tls else f"http://{page.at}/"
    return f"curl http://{page.at}/health"


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join(["", title, *(f"{_INDENT}{line}".rstrip() for line in lines)])


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
