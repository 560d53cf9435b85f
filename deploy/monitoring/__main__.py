"""``python -m deploy.monitoring``: write the rules and the dashboard to ``monitoring/``."""

from pathlib import Path

from deploy.monitoring.alerts import rules_file
from deploy.monitoring.dashboard import dashboard_file

FOLDER = Path(__file__).parents[2] / "monitoring"
FILES = {"prometheus-rules.yml": rules_file, "grafana-dashboard.json": dashboard_file}

if __name__ == "__main__":
    for name, text in FILES.items():
        (FOLDER / name).write_text(text())
