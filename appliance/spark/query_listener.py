"""The listener of PROGRESS_LISTENER: a function, or a StreamingQueryListener of PySpark, called in a thread of its own.

Whatever it does, copying goes on: an error of it is logged, and events that it is too slow for are left out.
"""

import contextlib
import importlib
import importlib.util
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Full, Queue
from types import ModuleType
from typing import Any

from appliance.errors import SettingsError

log = logging.getLogger("appliance.replicator")

_WAITING = 100
"""Most events that wait for the listener."""

_END_SECONDS = 5.0
"""Time for the listener to take the last events, in seconds."""

Json = dict[str, object]
Call = Callable[[], None]


class QueryListener:
    """Tells a listener the events of a link; see ``listening``."""

    def __init__(self, name: str, listener: Any) -> None:
        self._name = name
        self._listener = listener
        self._waiting: Queue[Call | None] = Queue(_WAITING)
        self._ids: Json = {}
        self._faults: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="progress-listener", daemon=True)
        self._thread.start()

    def started(self, event: Json) -> None:
        """A run has begun: a function is not told."""
        self._ids = {"id": event["id"], "runId": event["runId"]}
        self._tell("onQueryStarted", "QueryStartedEvent", event)

    def progressed(self, event: Json) -> None:
        """Something was copied, or has arrived: a function gets the progress itself."""
        if not _is_listener(self._listener):
            self._put(lambda: self._listener(event["progress"]))
        self._tell("onQueryProgress", "QueryProgressEvent", event)

    def idle(self, event: Json) -> None:
        """Nothing has moved: a listener hears of it, a function does not."""
        self._tell("onQueryIdle", "QueryIdleEvent", event)

    def end(self, exception: str | None) -> None:
        """The run ends; wait for the listener a moment."""
        if self._ids:
            event = {**self._ids, "exception": exception, "errorClassOnException": None}
            self._tell("onQueryTerminated", "QueryTerminatedEvent", event)
        with contextlib.suppress(Full):
            self._waiting.put(None, timeout=_END_SECONDS)
        self._thread.join(_END_SECONDS)

    def _tell(self, method: str, kind: str, event: Json) -> None:
        if _is_listener(self._listener):
            self._put(lambda: getattr(self._listener, method)(_event(kind, event)))

    def _put(self, call: Call) -> None:
        try:
            self._waiting.put_nowait(call)
        except Full:
            self._fault(f"it has not taken {_WAITING} events yet: the next ones are left out")

    def _work(self) -> None:
        while call := self._waiting.get():
            try:
                call()
            except Exception as error:  # it is not our code
                self._fault(f"{type(error).__name__}: {error}")
                log.debug("the listener failed", exc_info=error)

    def _fault(self, fault: str) -> None:
        """Say each fault once."""
        if fault not in self._faults:
            self._faults.add(fault)
            log.warning(f"PROGRESS_LISTENER={self._name}: {fault}")


@contextlib.contextmanager
def listening(name: str) -> Iterator[QueryListener | None]:
    """The listener of that name while the block runs, None for the empty name; an error of the block is told to it.

    Raises:
        SettingsError: there is none of that name.
    """
    if not name:
        yield None
        return
    listener, exception = QueryListener(name, _loaded(name)), None
    try:
        yield listener
    except BaseException as error:
        exception = f"{type(error).__name__}: {error}"
        raise
    finally:
        listener.end(exception)


def _loaded(name: str) -> Any:
    module, _, attribute = name.rpartition(":")
    try:
        found = getattr(_module(module), attribute)
        listener = found() if isinstance(found, type) else found
    except Exception as error:  # it is not our code
        raise SettingsError([f"PROGRESS_LISTENER={name}: {type(error).__name__}: {error}"]) from error
    if not (_is_listener(listener) or callable(listener)):
        raise SettingsError([f"PROGRESS_LISTENER={name}: expected a function, or a StreamingQueryListener"])
    return listener


def _module(name: str) -> ModuleType:
    if not name.endswith(".py"):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(Path(name).stem, name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _is_listener(listener: Any) -> bool:
    return hasattr(listener, "onQueryProgress")


def _event(kind: str, event: Json) -> object:
    """PySpark's own event. Its module is slow to load, and nobody else needs it."""
    from pyspark.sql.streaming import listener

    return getattr(listener, kind).fromJson(event)
