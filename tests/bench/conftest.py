"""Spark starts sooner for all tests of the suite."""

from tests.support.spark_classes import spark_classes

__all__ = ["spark_classes"]
