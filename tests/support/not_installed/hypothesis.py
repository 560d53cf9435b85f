"""Stands before the real package for the processes that tests start: users do not have it.

kio imports it where it is installed, and with it pytest: a third of what the start of a command takes.
"""

raise ImportError("not for the processes of tests")
