"""The control center over HTTP: addresses, headers, sessions, and who may see and send what.

Law: whoever reaches the address may read, unless the settings name viewers; only an operator may send a command.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from appliance.clock import now_ms
from appliance.console import connect_routes
from appliance.console.access import Access, Right, from_elsewhere, known_host
from appliance.console.commands import CommandBusy, Commands
from appliance.console.model.actions import ACTIONS, DOCTOR, remedy_proposal
from appliance.console.model.tables import Query
from appliance.console.pages import LinkPages, Viewer
from appliance.console.peer_centers import PeerCenters, came_by_socket
from appliance.console.sessions import WRONG, Sessions, form_of, redirect
from appliance.console.tunnel import TunnelView
from appliance.console.watch import LinkWatch
from appliance.errors import SettingsError, Unreachable
from appliance.runtime.local_pages import dialled
from appliance.settings.target import Target
from appliance.settings.values import Settings
from appliance.status.model.document import health

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

REMEDY, CONFIRMED = "remedy", "confirmed"
"""Addresses beside those of the commands: the remedy of a problem, and the command whose dry run has been seen."""
_FORM_BYTES_MAX = 64 * 1024
_CACHED_MAX = 64
_ASSETS = Path(__file__).parent / "assets"
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class ConsoleServer:
    """The server of one link's control center, which also shows the VM's other links."""

    def __init__(
        self,
        settings: Settings,
        variables: Mapping[str, str],
        watch: LinkWatch,
        commands: Commands,
        peers: PeerCenters,
        access: Access,
        tunnel: Callable[[], Awaitable[TunnelView]],
        metrics: Callable[[Target], Awaitable[tuple[int, bytes]]],
    ) -> None:
        """``variables`` are those of setenv.sh; ``tunnel`` and ``metrics`` ask processes on this VM."""
        self._settings = settings.control_center
        self._metrics_at = {"": settings.console.listen, "/tunnel": settings.tunnel.status}
        self._metrics_of = metrics
        self._watch = watch
        self._commands = commands
        self._peers = peers
        self._access = access
        self._tunnel = tunnel
        self._pages = LinkPages(settings, watch, commands)
        self._sessions = Sessions(settings.control_center, access, self._pages)
        self._cache: dict[object, str] = {}
        self._cached_of: object = None
        self._messages: dict[str, str] = {}
        self._connect = connect_routes.Connect(settings, variables, watch, commands, self.allowed)
        self.app = self._application()

    def _application(self) -> web.Application:
        app = web.Application(client_max_size=_FORM_BYTES_MAX, middlewares=[self._guard])
        own = f"/links/{self._pages.link}"
        app.router.add_static("/assets", _ASSETS)
        app.add_routes(
            [
                web.get("/", self._root),
                web.get("/health", self._health),
                web.get("/card.json", self._card),
                web.get("/metrics{of:(/tunnel)?}", self._metrics),
                web.get(f"{own}/", self._cached(lambda request: self._pages.main(_tier(request)))),
                web.get(f"{own}/topics", self._cached(lambda request: self._pages.topics(_query(request)))),
                web.get(f"{own}/topics/{{topic}}", self._cached(self._topic)),
                web.get(f"{own}/groups", self._cached(lambda request: self._pages.groups(_query(request, "name")))),
                web.get(f"{own}/events", self._cached(lambda _: self._pages.events())),
                *([web.get(f"{own}/tunnel", self._tunnel_page)] if self._pages.has_tunnel else []),
                web.get(f"{own}/doctor", self._doctor),
                web.get(f"{own}/actions", self._actions),
                web.get(f"{own}/history.json", self._history),
                web.get(f"{own}/overview", self._overview),
                web.post(f"{own}/actions/{{action}}", self._act),
                *self._sessions.routes(),
                *self._connect.routes(),
            ]
        )
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests by way of another site, and add the headers."""
        by_socket, own = came_by_socket(request), self._settings
        if not by_socket and not known_host(request.host, (own.listen.host, *own.names)):
            answer: web.StreamResponse = web.Response(
                status=421, text=f"{request.host!a}: not a name of this page: CONTROL_CENTER_NAMES\n"
            )
        elif by_socket and request.path != "/card.json":
            answer = web.Response(status=404, text="another control center gets the card alone\n")
        elif ".." in re.split(r"[/\\]", request.path):
            answer = web.Response(status=400, text="a path with .. is refused\n")
        elif own.closed and not by_socket and not self._may_read(request):
            answer = self._sessions.refusal(request)
        elif request.method not in ("GET", "HEAD") and from_elsewhere(request.headers):
            answer = web.Response(status=403, text="a request from another site is refused\n")
        else:
            try:
                answer = await handler(request)
            except web.HTTPException as error:
                answer = web.Response(status=error.status, text=f"{error.reason}\n", headers=_location(error))
        if WRONG in request and not await self._access.delay():
            answer = web.Response(status=429, text="too many wrong tokens at once\n", headers={"Retry-After": "5"})
        answer.headers.update(_HEADERS)
        answer.headers.setdefault("Cache-Control", "no-cache" if request.path.startswith("/assets/") else "no-store")
        return answer

    def allowed(self, request: web.Request) -> bool:
        """True if the request comes from an operator."""
        return self._right(request) is Right.OPERATOR

    def _may_read(self, request: web.Request) -> bool:
        is_open = request.path.startswith("/assets/") or self._sessions.begins_at(request.path)
        return is_open or _shows_certificate(request) or self._right(request) > Right.NONE

    def _right(self, request: web.Request) -> Right:
        """The right by session or token; a page that everybody reads leaves the header to proxies before it."""
        right = self._sessions.right(request)
        authorization = request.headers.get("Authorization", "")
        if right is Right.NONE and authorization and (self._settings.closed or request.method not in ("GET", "HEAD")):
            right = self._access.right_by(authorization)
            if right is Right.NONE:
                request[WRONG] = True
        return right

    async def _root(self, request: web.Request) -> web.StreamResponse:
        """The page for a browser; Connect's root for a console."""
        if "text/html" not in request.headers.get("Accept", ""):
            return self._connect.root()
        return await self._overview(request)

    async def _overview(self, request: web.Request) -> web.StreamResponse:
        self._watch.mark_viewed()
        return _html(request, self._pages.overview(await self._peers.cards()))

    async def _health(self, _request: web.Request) -> web.StreamResponse:
        """The control center answers: always 200; the link's health is the content."""
        return web.json_response({"link": self._pages.link, **health(self._watch.snapshot, now_ms())[1]})

    async def _card(self, _request: web.Request) -> web.StreamResponse:
        self._watch.mark_viewed()
        own_url = self._settings.url_at(dialled(self._settings.listen))
        return web.json_response({**self._pages.card(), "url": own_url})

    def _cached(self, make: Callable[[web.Request], str]) -> Handler:
        """A page that is made once for each snapshot, however many look at it."""

        async def answer(request: web.Request) -> web.StreamResponse:
            self._watch.mark_viewed()
            # No await from here to the end: a page that was made meanwhile from what is old would stay here as new.
            present = (
                self._watch.snapshot,
                self._watch.fresh,
                self._watch.replicator_unknown,
                self._watch.tunnel_fault,
            )
            if self._cached_of != present or len(self._cache) >= _CACHED_MAX:
                self._cache, self._cached_of = {}, present
            if request.path_qs not in self._cache:
                self._cache[request.path_qs] = make(request)
            return _html(request, self._cache[request.path_qs])

        return answer

    def _topic(self, request: web.Request) -> str:
        if self._watch.snapshot is None:
            raise web.HTTPServiceUnavailable(reason="nothing is known yet: wait for the first look at both clusters")
        page = self._pages.topic(request.match_info["topic"], _query(request), _tier(request))
        if page is None:
            raise web.HTTPNotFound(reason="this link has no such topic")
        return page

    async def _tunnel_page(self, request: web.Request) -> web.StreamResponse:
        self._watch.mark_viewed()
        return _html(request, self._pages.tunnel(await self._tunnel()))

    async def _doctor(self, request: web.Request) -> web.StreamResponse:
        self._watch.mark_viewed()
        return _html(request, self._pages.doctor(self._viewer(request)))

    async def _actions(self, request: web.Request) -> web.StreamResponse:
        self._watch.mark_viewed()
        return _html(request, self._pages.actions(self._viewer(request)))

    def _viewer(self, request: web.Request) -> Viewer:
        user = self._sessions.user(request)
        if not self.allowed(request):
            return Viewer(user=user)
        key = self._sessions.key(request)
        return Viewer(True, self._messages.get(key, ""), user, self._commands.proposal(key))

    async def _history(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self._pages.chart(_tier(request), request.query.get("topic", "")))

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        """The metrics of this VM's replicator, or of its tunnel's end, as that one serves them."""
        try:
            status, body = await self._metrics_of(self._metrics_at[request.match_info["of"]])
        except Unreachable as error:
            return web.Response(status=502, text=f"{error}\n")
        return web.Response(status=status, body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    async def _act(self, request: web.Request) -> web.StreamResponse:
        """Start a command; its lines show on the page."""
        if not self.allowed(request):
            raise web.HTTPForbidden(reason="this needs an operator")
        name = request.match_info["action"]
        if name not in (*ACTIONS, REMEDY, CONFIRMED):
            raise web.HTTPNotFound(reason="there is no such command")
        form = await form_of(request)
        self._messages = {}
        try:
            self._start(name, form, self._sessions.key(request), self._sessions.user(request))
        except (SettingsError, CommandBusy) as error:
            self._messages = {self._sessions.key(request): str(error)}
        return redirect(f"/links/{self._pages.link}/{name if name == DOCTOR else 'actions'}")

    def _start(self, name: str, form: Mapping[str, str], session: str, user: str) -> None:
        """Start what only shows something, or a dry run, or the command whose dry run this session has seen."""
        if name == CONFIRMED:
            proposal = self._commands.proposal(session)
            if proposal is None or form.get("command") != proposal.line:
                raise SettingsError(["nothing has been done: its dry run comes first"])
            proposal.confirm(form)
            if proposal.remedy:  # somebody may have resolved it meanwhile, and copying gone on
                remedy_proposal(self._watch.snapshot if self._watch.fresh else None, proposal.remedy)
            self._commands.start(proposal.title, proposal.command, user=user)
        elif name == REMEDY:
            self._commands.propose(session, remedy_proposal(self._watch.snapshot, form.get("command", "")), user)
        elif (proposal := ACTIONS[name].proposal(form, self._pages.link)) and ACTIONS[name].only_shows:
            self._commands.start(proposal.title, proposal.command, user=user)
        else:
            self._commands.propose(session, proposal, user)


def _shows_certificate(request: web.Request) -> bool:
    """True if TLS has accepted a client certificate."""
    return bool(request.transport and request.transport.get_extra_info("peercert"))


def _query(request: web.Request, sort: str = "state") -> Query:
    query: Mapping[str, Any] = request.query
    page = query.get("page", "1")
    return Query(
        text=query.get("text", "")[:249],
        state=query.get("state", ""),
        sort=query.get("sort", sort),
        down="down" in query,
        page=int(page) if page.isascii() and page.isdigit() and len(page) < 7 else 1,
    )


def _tier(request: web.Request) -> str:
    return "day" if request.query.get("range") == "day" else "hour"


def _html(request: web.Request, page: str) -> web.Response:
    """The page; only what is inside of its main element, where the page renews itself."""
    if "X-Part" in request.headers:
        page = page.partition('<main id="live">')[2].rpartition("</main>")[0]
    answer = web.Response(text=page, content_type="text/html")
    answer.enable_compression()
    return answer


def _location(error: web.HTTPException) -> dict[str, str]:
    return {name: error.headers[name] for name in ("Location", "Allow") if name in error.headers}
