"""The longest waits of a test."""

PATIENCE = 120.0
"""Seconds, after which something hangs: Python, Java and Spark may have to start in it, on a machine that is busy."""
