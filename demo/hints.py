"""How to look at a demo that was left running."""

import os

from demo.input import BULK
from demo.running_link import Stage


def how_to_look(stage: Stage) -> str:
    """Commands to copy, and how to stop."""
    orange, grape = (stage.properties_file(cluster) for cluster in (stage.source, stage.destination))
    return f"""
everything runs on, in {stage.directory}

  the settings of the link     {stage.env_file}
  what its processes say       tail -f {stage.directory}/{{source,destination,replicate}}.log
  the source's topics          kcat -F {orange} -L
  the copies                   kcat -F {grape} -L
  one more record ...          echo hello | kcat -F {orange} -P -t {BULK.name} -p 0
  ... and its copy             kcat -F {grape} -C -t {BULK.copy} -p 0 -o -1 -e -X isolation.level=read_committed

stop it, and remove all of it, with Ctrl-C (or kill {os.getpid()})
"""
