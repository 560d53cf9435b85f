"""Requests and responses in an older version of their API, converted by the common fields.

A request loses the fields that the older version does not know, and a response gets its missing fields as absent:
``appliance.kafka.protocol.versions`` bounds the versions so that nothing is lost.
"""

import dataclasses
import functools
import importlib
import re
import types
import typing
from typing import Any

from kio.static.protocol import RequestPayload

from appliance.kafka.protocol import versions
from appliance.kafka.protocol.lengths import kinds
from appliance.kafka.protocol.wire import Response, TypedExchange, decode, encode

_VERSION = re.compile(r"\.v\d+\.")


@dataclasses.dataclass(frozen=True, slots=True)
class OlderExchange(TypedExchange[Response]):
    """An exchange in another version than that of the request's type; otherwise as ``TypedExchange``."""

    version: int

    def frame(self, correlation: int, client_id: str) -> bytes:
        """See ``appliance.kafka.protocol.wire.Exchange``."""
        request: RequestPayload = as_type(self.request, of_version(type(self.request), self.version))
        return encode(request, correlation, client_id)

    def answer(self, frame: bytearray, correlation: int) -> Response:
        """See ``appliance.kafka.protocol.wire.Exchange``."""
        return decode_older(self.response_type, self.version, frame, correlation)


def exchange(
    offered: versions.OfferedVersions, request: RequestPayload, response_type: type[Response]
) -> TypedExchange[Response]:
    """The exchange in the version for a broker that offers these."""
    version = versions.version(offered, type(request))
    if version == request.__version__:
        return TypedExchange(request, response_type)
    return OlderExchange(request, response_type, version)


def decode_older(response_type: type[Response], version: int, frame: bytearray, correlation: int) -> Response:
    """A response of that version in a frame's content (without its size), as one of the newer type."""
    response: Response = as_type(decode(of_version(response_type, version), frame, correlation), response_type)
    return response


def of_version(message: type[Any], version: int) -> type[Any]:
    """The type of the same request or response in another version."""
    return _named(_VERSION.sub(f".v{version}.", message.__module__), message.__name__)


@functools.cache
def _named(module: str, name: str) -> type[Any]:
    kind: type[Any] = getattr(importlib.import_module(module), name)
    return kind


def as_type(message: Any, target: type[Any]) -> Any:
    """A message, or a part of one, as that of another version."""
    hints = _hints(target.__module__, target.__name__)
    values = {}
    for field in dataclasses.fields(target):
        if hasattr(message, field.name):
            values[field.name] = _converted(getattr(message, field.name), hints[field.name])
        elif field.default is dataclasses.MISSING:
            values[field.name] = _absent(hints[field.name])
    return target(**values)


@functools.cache
def _hints(module: str, name: str) -> dict[str, Any]:
    return typing.get_type_hints(_named(module, name))


def _converted(value: Any, hint: Any) -> Any:
    if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
        part = next(kind for kind in kinds(hint) if dataclasses.is_dataclass(kind))
        return tuple(as_type(each, typing.cast("type[Any]", part)) for each in value)
    return value


def _absent(hint: Any) -> Any:
    """The value of a field that the other version lacks, and that has no default in the protocol."""
    if types.NoneType in kinds(hint):
        return None
    empty: dict[Any, Any] = {bool: False, str: ""}
    return empty.get(hint, ())
