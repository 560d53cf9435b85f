from bench.lib.setup import setup


def test_it_names_the_command_the_machine_the_versions_and_the_brokers_options() -> None:
    told = setup(["replicate", "--workload", "events"])
    assert told["command"] == "bin/bench replicate --workload events"
    assert told.keys() == {"command", "machine", "versions", "Java", "brokers"}
    assert "cores" in told["machine"]
    assert "pyspark 4.3" in told["versions"]
    assert "-Xmx" in told["brokers"]
    assert "\n" not in "".join(told.values())
