"""The two prepare scripts: setenv.sh is checked, a VM's files are written, and what is left to do is said."""
