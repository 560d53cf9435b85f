"""The alerts for Prometheus and the dashboard for Grafana, made from the list of metrics; no IO but in ``__main__``.

``python -m deploy.monitoring`` writes them to ``monitoring/``.

- ``promql``: metrics and labels in an expression, compared with the list.
- ``alerts``: the alerts, and Prometheus's file of rules.
- ``panels``: the rows of the dashboard with their panels.
- ``dashboard``: the dashboard as Grafana imports it.
"""
