"""The part of the chart's schema of values that names variables: an unknown one is refused, with its name."""

import json

from appliance.settings.one_topic import ONE_TOPIC
from appliance.settings.variables import TABLE
from deploy.helm.variables import ROLES, names_of

_FILE = "_FILE"


def schema_file(present: str) -> str:
    """The schema ``present``, with the names of all variables: everything else there is written by hand."""
    schema = json.loads(present)
    names = dict.fromkeys(name for role in ROLES.values() for name in names_of(role))
    purposes = {name: variable.purpose for variable in (*TABLE, *ONE_TOPIC.values()) for name in variable.names}
    definitions = schema["$defs"]
    definitions["settings"]["properties"] = {
        name: {"$ref": "#/$defs/text", "description": _purpose(name, purposes[name])} for name in names
    }
    definitions["files"]["properties"] = {name: {"$ref": "#/$defs/file"} for name in names if name.endswith(_FILE)}
    return json.dumps(schema, indent=2) + "\n"


def _purpose(name: str, purpose: str) -> str:
    """The purpose of a variable, or of the file in its place."""
    own = {variable.name for variable in TABLE}
    return purpose if name in own or not name.endswith(_FILE) else f"File with this secret. {purpose}"
