"""The choice of the Java that runs the demo."""

import pytest

from appliance.errors import ToolMissing
from testbed.jars import java


def make_java(directory):
    directory.mkdir(parents=True)
    program = directory / "java"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return str(program)


def test_java_home_comes_before_the_path(tmp_path, monkeypatch):
    expected = make_java(tmp_path / "home" / "bin")
    make_java(tmp_path / "path")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert java() == expected


def test_a_java_home_without_java_falls_back_to_the_path(tmp_path, monkeypatch):
    expected = make_java(tmp_path / "path")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert java() == expected


def test_a_machine_without_java_is_told_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="apt-get install openjdk-17-jre-headless"):
        java()
