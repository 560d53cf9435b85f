"""SQL in flight: the link's statement, checked before anything runs, and as a plan over records.

``catalyst`` and the files that use it reach Spark through the session that they are given: none imports PySpark, except
``catalyst``, for its errors.

- ``model``: the statement as a value, its refusals with a caret, and the functions that it may use; pure.
- ``catalyst``: Catalyst's classes, as far as they are needed here.
- ``parsed_check``, ``checks``: the checks of a statement, before and after Spark has analysed it.
- ``plan``, ``layers``: the statement as a plan over records, made of a layer for each SELECT.
- ``flight``, ``jobs``: the records of lanes on their way through Spark's jobs, and these jobs.
- ``rows``, ``evaluation``: records as Arrow's rows, and a statement over records that are at hand.
"""
