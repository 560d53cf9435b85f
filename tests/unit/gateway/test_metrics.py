import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from prometheus_client.registry import Collector

from appliance.dns.responder import Outcome
from appliance.gateway.model.brokers import BrokerState, BrokerView, Fault
from appliance.gateway.model.metrics import DestinationCollector, exposition
from appliance.metrics import TUNNEL
from appliance.tunnel.limits.counters import Counters, Refusal
from appliance.tunnel.model.servers import Server
from appliance.tunnel.stream.relay import End
from appliance.version import VERSION
from tests.support.brokers import REFUSED_KEY, SEEN
from tests.support.exposition import NUMBERS, Samples, declared, exported, samples, source_vms, tunnel_collector
from tests.support.tunnel import SECRET

REFERENCE = Path(__file__).parents[3] / "docs/reference"
DOCUMENT = (REFERENCE / "status.md").read_text() + (REFERENCE / "metrics.md").read_text()


def shown(*collectors: Collector) -> Samples:
    """The samples that Prometheus reads."""
    text = exposition(*collectors).decode()
    assert SECRET not in text
    return samples(text)


def test_an_end_shows_what_it_has_counted():
    counters = Counters(accepted=7, open=3, carrying=1, refused=Counter({Refusal.IDENTITY: 2}))
    counters.ended[End.NEAR_LOST.name] += 1
    counters.to_target.bytes, counters.from_target.bytes = 10, 20
    found = shown(tunnel_collector(counters))
    assert found["build_info", "tcp", "source", VERSION] == 1
    assert (found["certificate_days_left",], found["previous_secret",]) == (42.5, 1)
    assert found["peer_certificate_days_left",] == 90.5
    assert found["connections_accepted_total",] == 7
    assert (found["connections_open",], found["connections_waiting",]) == (3, 2)
    assert {cause: found["connections_refused_total", cause] for cause in Refusal} == {
        cause: 2 if cause is Refusal.IDENTITY else 0 for cause in Refusal
    }
    assert (found["bytes_total", "to_target"], found["bytes_total", "from_target"]) == (10, 20)
    assert (found["relays_ended_total", "near_lost"], found["relays_ended_total", "complete"]) == (1, 0)


def test_a_histogram_counts_each_duration_in_every_bucket_that_reaches_it():
    counters = Counters()
    for seconds in (0.002, 0.2, 20):
        counters.handshakes.observe(seconds)
    found = shown(tunnel_collector(counters))
    buckets = {key[1]: value for key, value in found.items() if key[0] == "handshake_seconds_bucket"}
    assert (buckets["0.001"], buckets["0.0025"], buckets["0.1"], buckets["0.25"]) == (0, 1, 1, 2)
    assert (buckets["10.0"], buckets["+Inf"], found["handshake_seconds_count",]) == (2, 3, 3)
    assert found["handshake_seconds_sum",] == 20.202
    assert found["dial_seconds_count",] == 0


def test_the_destinations_end_shows_its_brokers_its_queries_and_its_endpoints():
    found = shown(DestinationCollector(NUMBERS))
    assert found["server_reachable",] == 1
    assert found["endpoints_open",] == 5
    assert found["dns_queries_total", "mapped"] == 3
    assert found["dns_queries_total", "dropped"] == 0
    assert (found["brokers", "open"], found["brokers", "refused"], found["brokers", "closed"]) == (2, 1, 0)
    assert found["broker", "b3.orange.example:9999", "refused"] == 1
    assert found["broker", "b1.orange.example:9093", "open"] == 1
    assert (found["metadata_known",], found["metadata_timestamp_seconds",]) == (1, SEEN.at)
    assert (found["metadata_failures_total", "credentials"], found["metadata_failures_total", "identity"]) == (2, 0)


def test_each_source_vm_shows_its_health_and_its_connections_once_it_was_tried():
    well, gone = source_vms("refused")
    well.carried.add(("far", "near"))
    untried = Server("203.0.113.99:15060", lambda: 0.5)
    found = shown(tunnel_collector(Counters(servers=[well, gone, untried])))
    assert (found["source_vm_well", well.name], found["source_vm_well", gone.name]) == (1, 0)
    assert ("source_vm_well", untried.name) not in found
    assert [found["source_vm_connections_open", vm.name] for vm in (well, gone, untried)] == [1, 0, 0]
    assert not [name for name, *_ in shown(tunnel_collector(Counters())) if name.startswith("source_vm")]


def test_an_unknown_value_has_no_sample():
    found = shown(DestinationCollector(replace(NUMBERS, server_fault=None, view=BrokerView())))
    unknown = {"server_reachable", "brokers", "broker", "metadata_known", "metadata_timestamp_seconds"}
    assert not {name for name, *_ in found} & unknown
    alone = shown(tunnel_collector(Counters(), peer=None))
    assert not [name for name, *_ in alone if name.startswith("peer_certificate")]


def test_a_silent_cluster_is_shown_with_its_last_list():
    found = shown(DestinationCollector(replace(NUMBERS, server_fault="refused", view=REFUSED_KEY)))
    assert (found["metadata_known",], found["server_reachable",]) == (0, 0)
    assert found["metadata_timestamp_seconds",] == REFUSED_KEY.at
    assert found["brokers", "open"] == 1


def test_the_process_is_shown_too():
    assert {"process_open_fds", "process_resident_memory_bytes"} <= {
        name for name, *_ in shown(tunnel_collector(Counters()))
    }


def test_every_metric_of_the_list_is_exported_with_its_labels():
    counters = Counters(servers=source_vms())
    shown = exposition(tunnel_collector(counters), DestinationCollector(NUMBERS)).decode()
    assert exported(shown) == declared(TUNNEL)


def test_the_documentation_has_every_value_of_the_labels():
    values = {value.value for kind in (Refusal, Outcome, Fault, BrokerState) for value in kind}
    wanted = values | {end.name.lower() for end in End}
    assert {value for value in wanted if not re.search(rf"\b{value}\b", DOCUMENT)} == set()
