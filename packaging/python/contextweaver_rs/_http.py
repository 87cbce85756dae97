"""Sends JSON to an address for the engine: hooks with an address, and memories with the interface of Mem0.

The client is Python's own, with the certificates and proxies of the environment. Redirects are not followed: a question may hold
what only this address may read.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

_AT_ONCE = 64 * 1024


class _Refuses(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Watched(urllib.request.AbstractHTTPHandler):
    """Notes the connections that it opens, so that they can be ended from outside."""

    opened: list[http.client.HTTPConnection]

    def do_open(self, http_class: Any, req: Any, **arguments: Any) -> Any:
        def opened(*positional: Any, **named: Any) -> http.client.HTTPConnection:
            connection: http.client.HTTPConnection = http_class(*positional, **named)
            self.opened.append(connection)
            return connection

        return super().do_open(opened, req, **arguments)


class _Http(_Watched, urllib.request.HTTPHandler):
    pass


class _Https(_Watched, urllib.request.HTTPSHandler):
    pass


def _end(opened: list[http.client.HTTPConnection]) -> None:
    for connection in opened:
        if connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)


def post(address: str, body: bytes, seconds: float, most: int, key: str | None) -> bytes:
    """The answer to `body`, of `most` bytes at most, within about `seconds`.

    Raises ValueError with what happened instead.
    """
    until = time.monotonic() + seconds
    headers = {"content-type": "application/json"}
    if key is not None:
        headers["authorization"] = f"Token {key}"
    request = urllib.request.Request(address, data=body, headers=headers, method="POST")
    opened: list[http.client.HTTPConnection] = []
    handlers = (_Http(), _Https())
    for handler in handlers:
        handler.opened = opened
    # The time of the socket is that between two packets, and the head of an answer may come in many.
    watch = threading.Timer(seconds, _end, [opened])
    watch.daemon = True
    watch.start()
    try:
        with urllib.request.build_opener(_Refuses, *handlers).open(request, timeout=seconds) as response:
            if not 200 <= response.status < 300:
                raise ValueError(f"the server answered {response.status} {response.reason}")
            answer = bytearray()
            while chunk := response.read1(_AT_ONCE):
                answer += chunk
                if len(answer) > most:
                    raise ValueError(f"the answer has more than {most} bytes")
                if time.monotonic() > until:
                    raise ValueError("no answer in time")
            return bytes(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise ValueError(f"the server answered {error.code} {error.reason}") from None
    except TimeoutError:
        raise ValueError("no answer in time") from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError) or time.monotonic() >= until:
            raise ValueError("no answer in time") from None
        raise ValueError(f"not reached: {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        if time.monotonic() >= until:
            raise ValueError("no answer in time") from None
        raise ValueError(f"not reached: {error}") from None
    finally:
        watch.cancel()


def divided(address: str, path: str) -> tuple[str, str, list[tuple[str, str]]]:
    """An address without its query, its path (`path` where it names none), and the parts of the query.

    Raises ValueError where it is not an address of http or https.
    """
    parts = urllib.parse.urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is not an address of http or https")
    path = path if parts.path in ("", "/") else parts.path
    query = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, path, "", "")), path, query
