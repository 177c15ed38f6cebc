#!/usr/bin/env python3
"""A page that shows jobs as they happen: `hearback.events` over server-sent events, on loopback.

    page.py [--port 0]

It prints the address of the page. The address has a token in it, because other users of the machine can reach
loopback, too. A browser that was away comes back with the cursor of the last event that it saw (`Last-Event-ID`), and
misses nothing."""

import argparse
import json
import pathlib
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from hearback import Client, HearbackError

HTML = pathlib.Path(__file__).with_name("page.html")
POLICY = "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


class Handler(BaseHTTPRequestHandler):
    hearback: Client
    token: str

    def do_GET(self):
        # A name that an attacker's page could point here is refused, and so is every path without the token.
        host = self.headers.get("Host", "").rpartition(":")[0]
        _, token, what, *rest = [*self.path.split("/"), "", ""]
        if host not in ("127.0.0.1", "localhost") or not secrets.compare_digest(token, self.token):
            return self.send_error(404)
        if what == "":
            return self.reply("text/html; charset=utf-8", HTML.read_bytes())
        if what == "events":
            return self.stream()
        if what == "output":
            return self.output(unquote(rest[0]))
        self.send_error(404)

    def stream(self):
        self.head("text/event-stream")
        since = self.headers.get("Last-Event-ID")
        # Subscribed first: what happens while the list is made comes after it.
        with self.hearback.events(since or "now") as events:
            if since is None:
                self.event("jobs", self.hearback.list(all=True, limit=200)["jobs"], events.cursor)
            for event in events:
                self.event("event", event, event["cursor"])

    def event(self, name, document, cursor):
        self.wfile.write(f"event: {name}\nid: {cursor}\ndata: {json.dumps(document)}\n\n".encode())

    def output(self, job):
        try:
            log = self.hearback.output(job, max_bytes=8192)
        except HearbackError as error:
            return self.send_error(404, explain=str(error))
        parts = [part.get("text") or "\n[…]\n" for part in log["parts"]]
        self.reply("text/plain; charset=utf-8", "".join(parts).encode())

    def reply(self, kind, body):
        self.head(kind)
        self.wfile.write(body)

    def head(self, kind):
        self.send_response(200)
        headers = {"Content-Type": kind, "Cache-Control": "no-store", "Content-Security-Policy": POLICY}
        for name, value in {**headers, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        """The token is part of each line, so nothing is logged."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # A browser that has gone is no error.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    with Client() as Handler.hearback:
        Handler.token = secrets.token_urlsafe(16)
        with Server(("127.0.0.1", options.port), Handler) as server:
            print(f"http://127.0.0.1:{server.server_port}/{Handler.token}/", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                pass


if __name__ == "__main__":
    main()
