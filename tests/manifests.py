"""``python -m tests.manifests``: write what Helm makes of the chart to ``deploy/kubernetes/``, for kubectl alone."""

import subprocess
from pathlib import Path

from deploy.helm.__main__ import CHART
from testbed.kubernetes.tools import clients

FOLDER = CHART.parents[1] / "kubernetes"
SECRET = "kafka-cloud-replicator-settings"
VALUES = {
    "source": {"existingSecret.name": SECRET, "networkPolicy.peers[0]": "203.0.113.7/32"},
    "destination": {"existingSecret.name": SECRET, "dns.upstream": "10.96.0.10"},
}
_OWN = {
    "source": "203.0.113.7/32 is the address from which the other side dials.",
    "destination": "10.96.0.10 is the address of the cluster's DNS: kubectl -n kube-system get service kube-dns",
}
_HEAD = """\
# The {side} side of a link (docs/start/kubernetes.md), as the chart makes it. Written by `python -m tests.manifests`.
# Adapt the image, and one address: {own}
# TUNNEL_PORT, TUNNEL_CONNECTIONS_MAX, TASKS and SPARK_DRIVER_MEMORY count as here, with their ports and sizes.
#
#   kubectl create secret generic {secret} --from-file=setenv.sh
#   kubectl apply -f {side}.yaml
"""


def manifests(side: str) -> str:
    """The text of ``deploy/kubernetes/<side>.yaml``; the doctor's pod is for ``helm test``."""
    values = [f"--set-string={name}={value}" for name, value in ({"side": side} | VALUES[side]).items()]
    command = [clients() / "helm", "template", "kafka-cloud-replicator", CHART, "--no-hooks", *values]
    text = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout
    return _HEAD.format(side=side, own=_OWN[side], secret=SECRET) + text


def write(folder: Path) -> None:
    """Write the files of both sides."""
    for side in VALUES:
        (folder / f"{side}.yaml").write_text(manifests(side))


if __name__ == "__main__":
    write(FOLDER)
