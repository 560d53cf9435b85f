"""The docker-compose.yml in Git: the destination VM's, rendered from setenv.sh.template.

``python -m deploy.render.example > docker-compose.yml`` renders it again.
"""

import sys
from pathlib import Path

from appliance.settings.env_file import load
from appliance.settings.parse import parse
from appliance.settings.role import Role
from deploy.render.compose import COMPOSE_FILE, DESTINATION_VM, rendered
from deploy.render.vm import IMAGE_USER, Vm

_TEMPLATE = Path(__file__).parents[2] / "setenv.sh.template"
_NO_ROLE = Role(0)
"""No role, so that the template's empty required variables are accepted."""


def example() -> str:
    """The text of the example."""
    environment = load(_TEMPLATE, {})
    vm = Vm(IMAGE_USER, IMAGE_USER, cores=2, folder=Path(), resolver=None, salt="")
    files = rendered(environment, parse(environment, _NO_ROLE), DESTINATION_VM, vm)
    return next(file.text for file in files if file.path == COMPOSE_FILE)


if __name__ == "__main__":
    sys.stdout.write(example())
