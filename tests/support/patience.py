"""Timeouts of tests."""

PATIENCE = 120.0
"""Timeout in seconds, enough for Python, Java and Spark to start on a busy machine."""
