"""The part of Kafka Connect's REST interface that consoles read; pause, resume and restart need the token."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from appliance.console.commands import CommandBusy, Commands
from appliance.console.model import connect
from appliance.console.watch import LinkWatch
from appliance.settings.values import Settings

_COMMANDS_MAX = 50
"""Commands of one restart."""
_END = "{end:/?}"
"""An address may end with a slash, as at a worker of Connect."""


@dataclass(slots=True)
class Connect:
    """The routes of one connector. ``allowed`` is true of a request by somebody with the token."""

    settings: Settings
    variables: Mapping[str, str]
    watch: LinkWatch
    commands: Commands
    allowed: Callable[[web.Request], bool]

    def routes(self) -> Iterable[web.RouteDef]:
        """The addresses, below ``/connectors`` and ``/connector-plugins``."""
        one = "/connectors/{name}"
        pages: dict[str, Callable[[], Any]] = {
            "": lambda: connect.info(self.settings.replicator, self.watch.snapshot, self.variables),
            "/config": lambda: connect.info(self.settings.replicator, self.watch.snapshot, self.variables)["config"],
            "/tasks": lambda: connect.tasks(self.settings.replicator, self.watch.snapshot),
            "/topics": lambda: connect.topics(self.settings.replicator, self.watch.snapshot),
            "/offsets": lambda: connect.offsets(self.watch.snapshot),
        }
        yield web.get("/connector-plugins" + _END, self._plugins)
        yield web.put("/connector-plugins/{plugin}/config/validate" + _END, self._validate)
        yield web.get("/connectors" + _END, self._connectors)
        for path, make in pages.items():
            yield web.get(one + path + _END, self._page(make))
        yield web.get(one + "/status" + _END, self._state)
        yield web.get(one + "/tasks/{task}/status" + _END, self._task)
        yield web.put(one + "/pause" + _END, self._pause)
        yield web.put(one + "/resume" + _END, self._resume)
        yield web.post(one + "/restart" + _END, self._restart)
        yield web.post(one + "/tasks/{task}/restart" + _END, self._restart_task)
        for path in ("/connectors", "/connector-plugins"):
            yield web.route("*", path + "{rest:(/.*)?}", self._refuse)

    def root(self) -> web.Response:
        """The worker."""
        self.watch.mark_viewed()
        return _json(connect.root(self.settings.destination.cluster_id))

    async def _plugins(self, _request: web.Request) -> web.StreamResponse:
        return _json(connect.plugins())

    async def _validate(self, request: web.Request) -> web.StreamResponse:
        """AKHQ asks this of each plugin before it shows a connector's settings."""
        plugin = request.match_info["plugin"]
        return _json(connect.validation()) if plugin == connect.CLASS else _error(404, f"plugin {plugin} not found")

    async def _connectors(self, request: web.Request) -> web.StreamResponse:
        self.watch.mark_viewed()
        expanded = request.query.getall("expand", [])
        if "status" in expanded:
            await self.watch.renew()
        if not expanded:
            return _json([self.settings.replicator])
        parts: dict[str, Callable[[], Any]] = {
            "status": self._status,
            "info": lambda: connect.info(self.settings.replicator, self.watch.snapshot, self.variables),
        }
        return _json({self.settings.replicator: {name: make() for name, make in parts.items() if name in expanded}})

    def _page(self, make: Callable[[], Any]) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.StreamResponse:
            self.watch.mark_viewed()
            return self._unless_unknown(request) or _json(make())

        return answer

    def _status(self) -> connect.Json:
        return connect.status(
            self.settings.replicator, self.watch.snapshot, self.watch.replicator_unknown, old=not self.watch.fresh
        )

    async def _state(self, request: web.Request) -> web.StreamResponse:
        await self.watch.renew()
        return self._unless_unknown(request) or _json(self._status())

    async def _task(self, request: web.Request) -> web.StreamResponse:
        await self.watch.renew()
        return self._unless_unknown(request) or self._unless_no_task(request) or _json(self._tasks()[_task(request)])

    async def _pause(self, request: web.Request) -> web.StreamResponse:
        return self._unless_refused(request) or self._start("Pause", [["pause", "--yes", "--why=by a console"]])

    async def _resume(self, request: web.Request) -> web.StreamResponse:
        return self._unless_refused(request) or self._start("Resume", [["resume", "--why=by a console"]])

    async def _restart(self, request: web.Request) -> web.StreamResponse:
        """Try all stopped partitions again where they stopped.

        As in KIP-745, the answer has the states if tasks or only failed ones are asked for, and else no content.
        """
        if refused := self._unless_refused(request) or self._retry(None):
            return refused
        options = (request.query.get(name, "") for name in ("includeTasks", "onlyFailed"))
        return _json(self._status(), 202) if "true" in map(str.lower, options) else web.Response(status=204)

    async def _restart_task(self, request: web.Request) -> web.StreamResponse:
        """Try the stopped partitions of one lane again."""
        refused = self._unless_refused(request) or self._unless_no_task(request) or self._retry(_task(request))
        return refused or web.Response(status=204)

    def _retry(self, task: str | None) -> web.Response | None:
        """Start the commands, if there are any; the answer if they cannot be started."""
        commands = list(connect.retries(self.watch.snapshot, task))
        started = self._start("Restart", commands[:_COMMANDS_MAX]) if commands else None
        return started if started is not None and started.status == 409 else None

    def _start(self, title: str, commands: list[list[str]]) -> web.Response:
        try:
            self.commands.start(title, *commands)
        except CommandBusy as error:
            return _error(409, str(error))
        return web.Response(status=202)

    def _unless_refused(self, request: web.Request) -> web.Response | None:
        if unknown := self._unless_unknown(request):
            return unknown
        if self.allowed(request):
            return None
        refused = _error(401, "this needs CONSOLE_TOKEN, as a bearer token or as the password of any user")
        refused.headers["WWW-Authenticate"] = 'Basic realm="control center"'
        return refused

    def _tasks(self) -> dict[str, connect.Json]:
        return {str(state["id"]): state for state in self._status()["tasks"]}

    def _unless_no_task(self, request: web.Request) -> web.Response | None:
        task = _task(request)
        return None if task in self._tasks() else _error(404, f"task {task} not found")

    def _unless_unknown(self, request: web.Request) -> web.Response | None:
        name = request.match_info["name"]
        return None if name == self.settings.replicator else _error(404, f"Connector {name} not found")

    async def _refuse(self, request: web.Request) -> web.StreamResponse:
        if request.method in ("GET", "HEAD"):
            return _error(404, "HTTP 404 Not Found")
        return _error(405, "this connector is made by setenv.sh: only pause, resume and restart are taken here")


def _task(request: web.Request) -> str:
    return request.match_info["task"]


def _json(value: object, code: int = 200) -> web.Response:
    return web.json_response(value, status=code)


def _error(code: int, message: str) -> web.Response:
    return _json(connect.error(code, message), code)
