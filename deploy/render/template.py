"""The texts in ``templates/``: loops and values, and no logic."""

import json
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from appliance.settings.role import prefix_of

_TEMPLATES = Path(__file__).parents[2] / "templates"


def filled(template: str, /, **values: object) -> str:
    """A template's text with its values filled in."""
    return _ENVIRONMENT.get_template(template).render(values)


def _quoted(value: object) -> str:
    """A YAML string in which Compose replaces nothing."""
    return json.dumps(str(value).replace("$", "$$"), ensure_ascii=False)


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(_TEMPLATES),
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,
)
_ENVIRONMENT.filters["quoted"] = _quoted
_ENVIRONMENT.filters["word"] = lambda name: prefix_of(name).lower()
