"""The version of this release. It equals the one in pyproject.toml, which is absent when the appliance runs."""

VERSION = "0.3.0"
