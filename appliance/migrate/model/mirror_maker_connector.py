"""The settings of MirrorMaker 2, also those of its source connector in a Connect cluster.

The keys of a connector are those of one direction in dedicated mode, without ``A->B.`` before them.
"""

from collections.abc import Mapping
from dataclasses import replace

from appliance.errors import SettingsError
from appliance.migrate.model.ledger import Outcome
from appliance.migrate.model.link import ImportedLink
from appliance.migrate.model.mirror_maker import CLUSTERS, mirror_maker_links

_COPIES = "MirrorSourceConnector"
_CLASS = "connector.class"
_OTHERS = {"emit.heartbeats.enabled": "false", "emit.checkpoints.enabled": "false"}
"""Heartbeats and checkpoints are the work of other connectors."""


def links_of_either(name: str, values: Mapping[str, str]) -> tuple[tuple[ImportedLink, ...], tuple[Outcome, ...]]:
    """The links, and the outcome for each key of the file ``name``, of a connector or of dedicated mode.

    Raises:
        SettingsError: it is a connector that copies no records, or has no enabled direction.
    """
    if CLUSTERS in values or not {_CLASS, "source.cluster.alias"} & values.keys():
        return mirror_maker_links(name, values)
    if (kind := values.get(_CLASS, _COPIES).strip()).rpartition(".")[2] != _COPIES:
        raise SettingsError([f"{name}: {_CLASS}={kind}: expected the connector that copies records, {_COPIES}"])
    source, target = (values.get(f"{end}.cluster.alias", "").strip() or end for end in ("source", "target"))
    before = f"{source}->{target}."
    added = {CLUSTERS: f"{source}, {target}", f"{before}enabled": "true", **_OTHERS}
    given = {before + key: value for key, value in values.items()}
    links, outcomes = mirror_maker_links(name, added | given)
    told = [outcome for outcome in outcomes if outcome.key in given or outcome.key not in added]
    return links, tuple(replace(outcome, key=outcome.key.removeprefix(before)) for outcome in told)
