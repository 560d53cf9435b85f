"""Which release this is; the same as in pyproject.toml, which is not there when the appliance runs."""

VERSION = "0.2.0"
