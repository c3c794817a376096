"""What `tacit serve` is told of browsers: which pages may be devices, and which page it serves itself."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path
from tacit.protocol.address import Address
from tacit.server.http.origins import listed_origin
from tacit.server.http.web_page import WebPage


@dataclass(frozen=True, kw_only=True)
class WebSettings:
    """Of one server."""

    page: WebPage | None
    origins: tuple[str, ...]
    local: bool  # whether this machine alone reaches the server, without TLS

    @classmethod
    def checked(cls, web: PathLike | None, origins: Sequence[str], address: Address) -> Self:
        """web: the folder of a page that the server serves. Raises: InputError for what cannot be served or listed."""
        of_type("web_origins", origins, list, tuple)
        for each in origins:
            of_type("web_origins", each, str)
        listed = tuple(dict.fromkeys(listed_origin(each) for each in origins))
        if web is not None and address.behind_proxy and not listed:
            raise InputError(
                "--web behind a proxy: the server does not know by which name browsers reach it; give it, as "
                "--web-origin https://NAME."
            )
        return cls(
            page=None if web is None else WebPage.from_folder(as_path("web", web)),
            origins=listed,
            local=address.is_loopback and address.tls_certificate is None and not address.behind_proxy,
        )

    @contextmanager
    def told(self) -> Iterator[dict[str, Any]]:
        """What a worker is told. The page is a copy: every worker serves the same, whenever it begins."""
        with tempfile.TemporaryDirectory(prefix="tacit-web-") as folder:
            if self.page is not None:
                self.page.write(Path(folder))
            yield {
                "web": None if self.page is None else folder,
                "web_origins": self.origins,
                "local": self.local,
            }

    def lines(self, url: str) -> tuple[str, ...]:
        """For people. url: of the server."""
        said = [f"pages of {each} may be devices: who serves them is who their readers trust" for each in self.origins]
        if self.page is not None:
            said.insert(0, f"page {url}/ : the operator serves the page that reads the text: for demonstrations")
        return tuple(said)
