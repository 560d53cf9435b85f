"""The parts of the Helm chart that follow from the code; no IO but in ``__main__``.

``python -m deploy.helm`` writes them into the chart, ``deploy/helm/kafka-cloud-replicator``.

- ``variables``: the variables that each container reads.
- ``schema``: the names of the settings and files that the values may have.
- ``alerts``: the alerts with the commands of Kubernetes.
"""
