"""A Spark task.

- ``worker``: its process, which gets assignments from the driver.
- ``runner``: its lanes, without Spark.
"""
