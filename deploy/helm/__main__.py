"""``python -m deploy.helm``: write the chart's files that follow from the code."""

from pathlib import Path

from deploy.helm.alerts import alerts_file
from deploy.helm.schema import schema_file
from deploy.helm.variables import variables_file

CHART = Path(__file__).parent / "kafka-cloud-replicator"
SCHEMA = CHART / "values.schema.json"
FILES = {"files/variables.json": variables_file, "files/prometheus-rules.yml": alerts_file}

if __name__ == "__main__":
    for name, text in FILES.items():
        (CHART / name).write_text(text())
    SCHEMA.write_text(schema_file(SCHEMA.read_text()))
