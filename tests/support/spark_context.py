"""A SparkContext in the test's own process, which the next one may follow."""

import os

import py4j.java_gateway
import py4j.protocol
from pyspark import SparkContext
from pyspark.sql import SparkSession

_OF_SPARK_SUBMIT = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")


def hide_gateway() -> None:
    """Hide its gateway from the programs that a test starts: they would take it for that of spark-submit."""
    for name in _OF_SPARK_SUBMIT:
        os.environ.pop(name, None)


def forget_context() -> None:
    """Let this process make another SparkContext, as soon as Java has ended."""
    hide_gateway()
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    py4j.java_gateway.get_return_value = py4j.protocol.get_return_value  # a session translates its errors
