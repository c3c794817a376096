"""As much of S3's protocol as `Blobs` speaks, on the loopback, with objects in memory."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

DATED = {"ETag": '"x"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
LISTED = "<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00Z</LastModified><Size>{}</Size></Contents>"


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects: dict[str, bytes]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, code: int, body: bytes = b"", headers: dict[str, str] = DATED) -> None:
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_PUT(self) -> None:
        self.objects[unquote(urlsplit(self.path).path)] = self._body()
        self._answer(200)

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if "list-type" in (query := parse_qs(asked.query)):
            return self._list(f"{asked.path}/", query.get("prefix", [""])[0])
        content = self.objects.get(unquote(asked.path))
        if content is None:
            return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>", {})
        if found := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            first, last = int(found[1]), min(int(found[2]), len(content) - 1)
            range_said = {"Content-Range": f"bytes {first}-{last}/{len(content)}"}
            return self._answer(206, content[first : last + 1], DATED | range_said)
        return self._answer(200, content)

    do_HEAD = do_GET  # noqa: N815

    def _list(self, bucket: str, prefix: str) -> None:
        found = {name.removeprefix(bucket): len(content) for name, content in sorted(self.objects.items())}
        listed = "".join(LISTED.format(name, size) for name, size in found.items() if name.startswith(prefix))
        result = f"<ListBucketResult><IsTruncated>false</IsTruncated>{listed}</ListBucketResult>"
        self._answer(200, result.encode(), {})

    def do_POST(self) -> None:
        """Delete several."""
        names = re.findall("<Key>(.*?)</Key>", self._body().decode())
        for name in names:
            self.objects.pop(f"{urlsplit(self.path).path}/{name}", None)
        deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
        self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode(), {})


@contextmanager
def object_store() -> Iterator[str]:
    """Its address."""
    handler = type("Requests", (_Requests,), {"objects": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
