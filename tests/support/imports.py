"""Settings of other programs as users have them, for ``appliance import``."""

MIRROR_MAKER = r"""# An mm2.properties as people have them: both directions, old and new spellings of keys.
clusters = source, target
source.bootstrap.servers = 127.0.31.1:9092
target.bootstrap.servers = 127.0.32.1:9092

source->target.enabled = true
target->source.enabled = true
source->target.emit.heartbeats.enabled = true
source->target.emit.checkpoints.enabled = true

topics = .*
groups = .*
topics.blacklist = .*[\-\.]internal, .*\.replica, __consumer_offsets
groups.blacklist = console-consumer-.*, connect-.*, __.*

tasks.max = 1
replication.factor = 1
refresh.topics.enabled = true
refresh.topics.interval.seconds = 10
sync.topic.configs.enabled = true
offset-syncs.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
"""

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_LOGIN = rf"""{_MODULE} required username=\"orange-key\" password=\"pa$$ \\\"quoted\\\" 'word'\";"""

REPLICATOR = r"""{
  "name": "replicate-orange",
  "config": {
    "connector.class": "io.confluent.connect.replicator.ReplicatorSourceConnector",
    "tasks.max": 4,
    "key.converter": "io.confluent.connect.replicator.util.ByteArrayConverter",
    "value.converter": "io.confluent.connect.replicator.util.ByteArrayConverter",
    "src.kafka.bootstrap.servers": "SASL_SSL://b0.orange.example:9092,SASL_SSL://b1.orange.example:9092",
    "src.kafka.security.protocol": "SASL_SSL",
    "src.kafka.sasl.mechanism": "PLAIN",
    "src.kafka.sasl.jaas.config": "LOGIN",
    "src.consumer.group.id": "replicate-orange",
    "src.consumer.max.poll.records": "10000",
    "dest.kafka.bootstrap.servers": "b0.grape.example:9092",
    "dest.kafka.security.protocol": "PLAINTEXT",
    "topic.regex": "orders\\..{1,20}",
    "topic.whitelist": "payments,audit.log",
    "topic.blacklist": "orders.test",
    "topic.rename.format": "${topic}.copy",
    "topic.poll.interval.ms": 30000,
    "topic.config.sync": true,
    "topic.preserve.partitions": true,
    "dest.topic.replication.factor": 3,
    "provenance.header.enable": true,
    "provenance.header.filter.overrides": "orders:dc1:.*",
    "offset.timestamps.commit": false,
    "offset.translator.tasks.max": 1,
    "confluent.license": "eyJ-a-license",
    "confluent.topic.replication.factor": 1,
    "some.key": "of nobody"
  }
}""".replace("LOGIN", _LOGIN)
"""A connector of Confluent Replicator; its password holds blanks, quotes and dollars."""
