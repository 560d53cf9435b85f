"""The console: what is copied, what stops, and what cannot be known, from committed facts alone.

::

    clusters -> facts (look, tail) -> Snapshot (compose) -> table | JSON | health | metrics

``facts``, ``compose``, ``snapshot``, ``findings``, ``document``, ``health`` and ``metrics`` are pure; ``tail``,
``holds``, ``look`` and ``watcher`` ask the clusters; ``http`` and ``service`` answer beside the replicator, ``table``
and ``command`` at the terminal.

Law: what is not known is None and says since when, it is never 0.
"""
