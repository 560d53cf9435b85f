"""The alerts for Prometheus, whose descriptions name the commands of Kubernetes in the place of Docker's."""

import re

from deploy.monitoring.alerts import rules_file

_COMMANDS = {
    r"docker-compose exec (replicator|order)": r"kubectl -n NAMESPACE exec deploy/NAME -c \1 --",
    r"docker-compose run --rm doctor": "helm -n NAMESPACE test RELEASE --logs",
    r"docker-compose ps": "kubectl -n NAMESPACE get pods",
    r"docker-compose logs( --tail \d+)?( replicator)?": r"kubectl -n NAMESPACE logs deploy/NAME\1",
    r"docker-compose up -d": "kubectl -n NAMESPACE rollout restart deploy/NAME",
}
"""Docker's commands, as regular expressions, and those of Kubernetes; the chart fills in the words in capitals."""


def alerts_file() -> str:
    """The chart's ``files/prometheus-rules.yml``."""
    text = rules_file()
    for docker, kubernetes in _COMMANDS.items():
        text = re.sub(docker, kubernetes, text)
    return text.replace("python -m deploy.monitoring", "python -m deploy.helm")
