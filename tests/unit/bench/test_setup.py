from bench.lib.setup import setup


def test_it_names_the_command_the_machine_the_versions_and_the_brokers_options() -> None:
    facts = setup(["replicate", "--workload", "events"])
    assert facts["command"] == "bin/bench replicate --workload events"
    assert facts.keys() == {"command", "machine", "versions", "Java", "brokers"}
    assert "cores" in facts["machine"]
    assert "pyspark 4.3" in facts["versions"]
    assert "-Xmx" in facts["brokers"]
    assert "\n" not in "".join(facts.values())
