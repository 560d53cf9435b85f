"""Stands before the real package for the processes that tests start: the image has none, and PySpark asks for it."""

raise ImportError("not for the processes of tests")
