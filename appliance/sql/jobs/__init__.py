"""The Spark jobs that run the SQL.

- ``jobs``, ``plan``: for each task one after the other, and their plan.
- ``job_ends``, ``listener``: the way of a job's ends to the lanes; the SQL of a task, which serves them.
"""
