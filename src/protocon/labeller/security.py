"""Who may talk to the page: those who have its address with the token, from the page itself, within limits.

Everything is refused unless it is allowed: other hosts (DNS rebinding), other origins (a page of somebody else's),
requests without the token, methods and bodies that the page never sends, and floods.
"""

import hmac
import json
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN_HEADER = b"x-protocon-token"
LARGEST_BODY = 64 * 1024
LONGEST_ADDRESS = 2048
_TOO_LARGE = (413, f"the body is larger than {LARGEST_BODY:,} bytes")
PUBLIC = frozenset(("/page.css", "/page.js", "/icon.svg"))
"""Files of the package itself, the same for everybody; they hold nothing of the user's."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}"
)
_NOTEBOOKS = "http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:*"


@dataclass
class Bucket:
    """So many requests per second, and a few more at once."""

    rate: float = 150.0
    burst: float = 300.0
    clock: Callable[[], float] = time.monotonic
    _left: float = field(default=-1.0)
    _at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> bool:
        """Whether one more is allowed now."""
        with self._lock:
            now = self.clock()
            self._left = self.burst if self._left < 0 else min(self.burst, self._left + self.rate * (now - self._at))
            self._at = now
            if self._left < 1.0:
                return False
            self._left -= 1.0
            return True


class Guard:
    """ASGI middleware in front of the whole application.

    Args:
        app: what is guarded.
        token: what the address must hold.
        hosts: `host:port` under which the page may be asked for.
        framed: whether notebooks on this machine may show the page in a frame.
        bucket: limit on the rate of requests.
    """

    def __init__(
        self, app: App, *, token: str, hosts: frozenset[str], framed: bool = False, bucket: Bucket | None = None
    ) -> None:
        self.app = app
        self.token = token.encode()
        self.hosts = frozenset(host.lower() for host in hosts)
        self.origins = frozenset(f"http://{host}" for host in self.hosts)
        self.framed = framed
        self.bucket = bucket or Bucket()
        policy = _POLICY.format(ancestors=_NOTEBOOKS if framed else "'none'")
        self.headers: list[tuple[bytes, bytes]] = [
            (b"content-security-policy", policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets here
        refusal = self._refusal(scope)
        if refusal is not None:
            await self._refuse(send, *refusal)
            return
        body = await _body(receive)
        if body is None:
            await self._refuse(send, *_TOO_LARGE)
            return

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message.get("headers", ())}
                added = [(name, value) for name, value in self.headers if name not in present]
                if b"cache-control" not in present:
                    added.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            await send(message)

        await self.app(scope, _replayed(body, receive), guarded_send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason, or None."""
        if not self.bucket.take():
            return 429, "too many requests; wait a moment"
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_ADDRESS:
            return 414, "the address is too long"
        host = [value.decode("latin-1").lower() for value in headers.get(b"host", [])]
        if len(host) != 1 or host[0] not in self.hosts:
            return 421, "this host name is not served here; use the address that `protocon label` printed"
        origin = [value.decode("latin-1").lower() for value in headers.get(b"origin", [])]
        if any(value not in self.origins for value in origin):
            return 403, "requests from other pages are refused"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "this method is not used here"
        if scope["path"] in PUBLIC:
            return None
        if not self._has_token(scope, headers):
            return 403, "the token is missing or wrong; use the whole address that `protocon label` printed"
        return _unfit_body(headers) if scope["method"] == "POST" else None

    def _has_token(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> bool:
        """In the header; for pictures, pages and files, which a browser asks for itself, in the address."""
        given = headers.get(TOKEN_HEADER, [])
        if not given and scope["method"] != "POST":
            try:
                fields = parse_qs(scope["query_string"].decode("ascii"), max_num_fields=20)
            except (UnicodeDecodeError, ValueError):
                return False
            given = [value.encode("utf-8", "replace") for value in fields.get("token", [])]
        return len(given) == 1 and hmac.compare_digest(given[0], self.token)

    async def _refuse(self, send: Send, status: int, reason: str) -> None:
        body = json.dumps({"error": reason}).encode()
        headers = [*self.headers, (b"content-type", b"application/json"), (b"cache-control", b"no-store")]
        headers += [(b"content-length", str(len(body)).encode()), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _unfit_body(headers: dict[bytes, list[bytes]]) -> tuple[int, str] | None:
    kind = headers.get(b"content-type", [b""])[0].split(b";")[0].strip().lower()
    if kind != b"application/json":
        return 415, "expected application/json"
    length = headers.get(b"content-length", [b"0"])[0]
    if not length.isdigit() or len(length) > 12 or int(length) > LARGEST_BODY:
        return _TOO_LARGE
    return None


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None if it is larger than it may be, whatever its headers say."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)  # the client has gone
        parts.append(message.get("body", b""))
        if sum(map(len, parts)) > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body as one message, then whatever comes."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replayed
