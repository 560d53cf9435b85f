"""Sessions of the page: a token in a form or a login at a provider begins one, and the user ends it."""

import logging
import re
from urllib.parse import urlencode

from aiohttp import web

from appliance.console.access import SESSION_SECONDS, Access, Right
from appliance.console.login import BEGUN_SECONDS, Logins
from appliance.console.pages import LinkPages, Viewer
from appliance.errors import CredentialsRefused, TokenUnavailable
from appliance.settings.control_center import ControlCenterSettings

log = logging.getLogger("appliance.console")

WRONG = web.RequestKey("WRONG", bool)
"""Key of a request that gave a wrong token."""


class Sessions:
    """The sessions, their cookies and their pages. ``own`` are the settings of this link's control center."""

    def __init__(self, own: ControlCenterSettings, access: Access, pages: LinkPages) -> None:
        self._own = own
        self._access = access
        self._pages = pages
        self._logins = Logins(own.login)
        self._path = f"/links/{pages.link}/"
        self._login_path = f"{self._path}login"
        self._cookie = f"session-{pages.link}"

    def routes(self) -> list[web.RouteDef]:
        """The addresses of logins and sessions."""
        logins = [web.get(self._login_path, self._login), web.get(f"{self._login_path}/answer", self._logged_in)]
        return [
            *(logins if self._own.login else ()),
            web.post(f"{self._path}session", self._begin_session),
            web.post(f"{self._path}session/end", self._end_session),
        ]

    def key(self, request: web.Request) -> str:
        """The session's cookie, on the link's own pages; empty without."""
        return request.cookies.get(self._cookie, "") if request.path.startswith(self._path) else ""

    def right(self, request: web.Request) -> Right:
        """The right of a request by its session."""
        return self._access.in_session(self.key(request))

    def user(self, request: web.Request) -> str:
        """The user who has logged in; empty without a session, and after a token."""
        return self._access.user_in(self.key(request))

    def begins_at(self, path: str) -> bool:
        """True for the addresses of a login, which everybody may ask."""
        return bool(self._own.login) and path in (self._login_path, f"{self._login_path}/answer")

    def refusal(self, request: web.Request) -> web.Response:
        """The answer to who may not read: a browser goes to the login, if there is one."""
        if request.path == "/health":  # for probes, which have no token
            return web.Response()
        if "X-Part" in request.headers:  # an open page, which says so, and asks for nothing
            return web.Response(status=401)
        browses = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
        if self._own.login and browses and "Authorization" not in request.headers:
            # A session's cookie is sent to the link's own pages alone.
            if request.path == "/":
                return redirect(f"{self._path}overview")
            return redirect(f"{self._login_path}?{urlencode({'to': request.path_qs})}")
        if not (self._own.viewer_token or self._own.token):
            return web.Response(status=401, text="this needs a login, with a browser\n")
        headers = {"WWW-Authenticate": 'Basic realm="control center"'}
        text = f"this needs {'CONSOLE_VIEWER_TOKEN' if self._own.viewer_token else 'CONSOLE_TOKEN'}"
        return web.Response(status=401, text=f"{text}, as any user's password\n", headers=headers)

    async def _login(self, request: web.Request) -> web.StreamResponse:
        """Send the browser to the provider."""
        if request.headers.get("Sec-Fetch-Dest", "document") != "document":  # such as a picture in another site's page
            raise web.HTTPForbidden(reason="a login begins in a window of its own")
        path = request.query.get("to", "")
        if not re.fullmatch(rf"{re.escape(self._path)}[!-~]*", path) or path.startswith(self._login_path):
            path = self._path
        scheme = "https" if _is_secure(request) else "http"
        try:
            state, cookie, address = await self._logins.begin(
                f"{scheme}://{request.host}{self._login_path}/answer", path
            )
        except TokenUnavailable as error:
            return self._login_failed(error, 502)
        answer = redirect(address)
        # Lax: the provider's page sends the browser back.
        self._set_cookie(request, answer, self._login_cookie(state), cookie, self._login_path, BEGUN_SECONDS, "Lax")
        return answer

    def _login_cookie(self, state: str) -> str:
        """The name of a login's cookie: each tab of a browser has its own."""
        return f"login-{self._pages.link}-{state[:8]}"

    async def _logged_in(self, request: web.Request) -> web.StreamResponse:
        """Begin the session of whom the provider has logged in."""
        name = self._login_cookie(request.query.get("state", ""))
        try:
            login = await self._logins.finish(request.cookies.get(name, ""), request.query)
        except (CredentialsRefused, TokenUnavailable) as error:
            return self._login_failed(error, 403 if isinstance(error, CredentialsRefused) else 502)
        fields = {"user": login.user, "subject": login.subject, "right": login.right.name.lower()}
        log.info("login", extra={"fields": fields})
        if login.right is Right.NONE:
            answer = self._login_page(f"{login.user} is neither an operator nor a viewer of this link.", 403)
            answer.del_cookie(self._cookie, path=self._path)
            return answer
        # Not a redirect, which would come from the provider: the session's cookie would not be sent.
        answer = self._login_page(f"{login.user} has logged in.", 200, login.path)
        self._begin(request, answer, login.right, login.user)
        answer.del_cookie(name, path=self._login_path)
        return answer

    def _login_failed(self, error: Exception, status: int) -> web.Response:
        log.log(
            logging.WARNING if status == 502 else logging.INFO, "login failed", extra={"fields": {"cause": str(error)}}
        )
        return self._login_page(f"The login failed: {error}.", status)

    def _login_page(self, message: str, status: int, path: str = "") -> web.Response:
        return web.Response(status=status, text=self._pages.login(message, path), content_type="text/html")

    def _begin(self, request: web.Request, answer: web.Response, right: Right, user: str = "") -> None:
        session = self._access.begin(right, user)
        self._set_cookie(request, answer, self._cookie, session, self._path, SESSION_SECONDS, "Strict")

    def _set_cookie(
        self, request: web.Request, answer: web.Response, name: str, value: str, path: str, seconds: int, same_site: str
    ) -> None:
        secure = _is_secure(request)
        answer.set_cookie(name, value, max_age=seconds, path=path, httponly=True, samesite=same_site, secure=secure)

    async def _begin_session(self, request: web.Request) -> web.StreamResponse:
        form = await form_of(request)
        if self._access.right_of_token(form.get("token", "")) is not Right.OPERATOR:
            request[WRONG] = True
            page = self._pages.actions(Viewer(message="That is not the token."))
            return web.Response(status=403, text=page, content_type="text/html")
        answer = redirect(f"{self._path}actions")
        self._begin(request, answer, Right.OPERATOR)
        return answer

    async def _end_session(self, request: web.Request) -> web.StreamResponse:
        user = self.user(request)
        self._access.end(self.key(request))
        if user:  # the provider would log the same user in at once
            answer = self._login_page("The session has ended here. The provider may still know you.", 200)
        else:
            answer = redirect(f"{self._path}actions")
        answer.del_cookie(self._cookie, path=self._path)
        return answer


def _is_secure(request: web.Request) -> bool:
    return request.secure or request.headers.get("X-Forwarded-Proto", "").partition(",")[0].strip().lower() == "https"


async def form_of(request: web.Request) -> dict[str, str]:
    """The fields of a form; refused if it cannot be read."""
    try:
        return {name: str(value) for name, value in (await request.post()).items()}
    except (ValueError, LookupError, ConnectionError, RuntimeError) as error:
        raise web.HTTPBadRequest(reason="the form cannot be read") from error


def redirect(path: str) -> web.Response:
    """An answer that leads a browser to another address."""
    return web.Response(status=303, headers={"Location": path})
