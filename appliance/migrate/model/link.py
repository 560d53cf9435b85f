"""A link as the imported settings describe it, and its setenv.sh."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from appliance.errors import SettingsError
from appliance.migrate.model.verdict import Rule, Translation
from appliance.settings.env_file import assignment
from appliance.settings.parsers import identifier
from appliance.settings.target import Target, is_ip_literal
from appliance.settings.values import Route
from appliance.settings.variables import TABLE

_ROUTE = "SOURCE_ROUTE"


@dataclass(frozen=True, slots=True)
class ImportedLink:
    """One direction between two clusters: the variables that are known."""

    source: str
    destination: str
    variables: Mapping[str, str]

    @property
    def folder(self) -> str:
        """The name of the link's folder."""
        return f"kafka-cloud-replicator-{self.source}-{self.destination}"

    @property
    def route(self) -> Route:
        """The way to the source brokers: direct where they are named by addresses, which the tunnel does not carry."""
        return Route(self.variables.get(_ROUTE, Route.TUNNEL))

    def with_variables(self, more: Mapping[str, str]) -> "ImportedLink":
        """The same link with more variables."""
        return replace(self, variables={**self.variables, **more})


class LinkBuilder:
    """Collects the variables of one link from the rules."""

    def __init__(self, source: str, destination: str) -> None:
        for name in (source, destination):
            try:
                identifier(name)
            except ValueError as error:
                raise SettingsError([f"the cluster's name {name!r}: {error}"]) from error
        self.source = source
        self.destination = destination
        self._variables = {"SOURCE_CLUSTER_ID": source, "DESTINATION_CLUSTER_ID": destination}
        self._withheld: set[str] = set()

    def apply(self, rule: Rule, value: str) -> Translation:
        """Set what the rule makes of the value."""
        translation = rule(value)
        self._variables |= translation.variables
        self._withheld |= set(translation.withheld)
        return translation

    def default(self, variable: str, value: str) -> None:
        """Set a variable that is not yet set."""
        self._variables.setdefault(variable, value)

    def built(self) -> ImportedLink:
        """The link."""
        variables = {name: value for name, value in self._variables.items() if name not in self._withheld}
        if _has_addresses(variables.get("SOURCE_BROKER_SERVERS", "")):
            variables[_ROUTE] = Route.DIRECT
        return ImportedLink(self.source, self.destination, variables)


def _has_addresses(servers: str) -> bool:
    return any(is_ip_literal(Target.parse(server).host) for server in servers.split(",") if server)


def setenv_text(link: ImportedLink, origin: str, missing: Collection[str]) -> str:
    """The text of the link's setenv.sh; ``missing`` are the variables that somebody has to fill in."""
    head = (
        f"# The link from {link.source} to {link.destination}, imported from {origin}.\n"
        "# setenv.sh.template explains all variables; those that are not here have their defaults.\n"
    )
    return head + "".join(_entries(link.variables, missing))


def _entries(variables: Mapping[str, str], missing: Collection[str]) -> Iterator[str]:
    for variable in TABLE:
        if variable.name in variables or variable.name in missing:
            fill_in = "" if variables.get(variable.name) else " Fill it in."
            yield f"\n# {variable.purpose}{fill_in}\n{assignment(variable.name, variables.get(variable.name, ''))}"
