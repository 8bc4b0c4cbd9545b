"""A Sentry ingest endpoint on this machine that understands envelopes, and can hang or refuse."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Item:
    """One item of an envelope: its type and its payload."""

    type: str
    payload: Any


def parse_envelope(body: bytes) -> list[Item]:
    """A header line, then for each item a header line and a payload: as long as it says, else up to the line's end."""
    header, _, rest = body.partition(b"\n")
    json.loads(header)
    items = []
    while rest.strip():
        line, _, rest = rest.partition(b"\n")
        about = json.loads(line)
        length = about.get("length", rest.find(b"\n") if b"\n" in rest else len(rest))
        payload, rest = rest[:length], rest[length:]
        assert len(payload) == length
        assert rest[:1] in (b"", b"\n")
        items.append(Item(about["type"], json.loads(payload)))
        rest = rest[1:]
    return items


@dataclass
class Endpoint:
    """What was received. `answers`: cleared, every request hangs. `status`: the answer's."""

    dsn: str = ""
    status: int = 200
    requests: int = 0
    items: list[Item] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    answers: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def events(self) -> list[dict[str, Any]]:
        with self.lock:
            return [item.payload for item in self.items if item.type == "event"]

    def receive(self, body: bytes, encoding: str | None) -> None:
        plain = gzip.decompress(body) if encoding == "gzip" else body
        items = parse_envelope(plain)
        with self.lock:
            self.bodies.append(plain)
            self.items += items


@contextmanager
def running_endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    endpoint.answers.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status = endpoint.status  # the next request's may be set as soon as this one is received
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with endpoint.lock:
                endpoint.requests += 1
            endpoint.asked.set()
            endpoint.answers.wait(60)
            if status == 200:
                endpoint.receive(body, self.headers.get("Content-Encoding"))
            try:
                self.send_response(status)
                self.send_header("Content-Length", "0")  # a body of its own packet would wait for a delayed ACK
                self.end_headers()
            except OSError:  # the client did not wait for the answer
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Not a line of the tests' output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint.dsn = f"http://publickey@127.0.0.1:{server.server_port}/42"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.answers.set()
        server.shutdown()
        server.server_close()
        thread.join()
