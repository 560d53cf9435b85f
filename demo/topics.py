"""The source's topics: those that are copied, and those that must not be."""

from collections.abc import Mapping

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from appliance.errors import Unreachable
from demo.input import COPIED, NOT_COPIED, InputTopic

_SECONDS = 30.0


def make_topics(client: Mapping[str, str]) -> None:
    """Makes all of them, and puts one record into each that is not copied; blocks.

    Raises:
        Unreachable: the cluster did not do it.
    """
    wanted = [NewTopic(topic.name, topic.partitions, config=_config(topic)) for topic in COPIED]
    wanted += [NewTopic(name, 1) for name in NOT_COPIED]
    admin = AdminClient({**client})
    try:
        for future in admin.create_topics(wanted, request_timeout=_SECONDS).values():
            future.result(_SECONDS)
        producer = Producer({**client})
        for name in NOT_COPIED:
            producer.produce(name, b"not for the destination")
        unsent = producer.flush(_SECONDS)
    except KafkaException as error:
        raise Unreachable(f"the demo's topics could not be made: {error.args[0]}") from error
    if unsent:
        raise Unreachable(f"the source cluster took no record within {_SECONDS:g} s")


def _config(topic: InputTopic) -> dict[str, str]:
    return {"message.timestamp.type": "LogAppendTime"} if topic.log_append_time else {}
