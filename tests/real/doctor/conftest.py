"""Spark starts sooner in the tests that look at a replicator beside the doctor."""

from tests.support.spark_classes import spark_classes

__all__ = ["spark_classes"]
