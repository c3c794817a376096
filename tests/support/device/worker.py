"""A server's application in the place of an operator that is made up."""

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx
from tests.support.device.operator import Operator


@dataclass
class Worker(Operator):
    """In place of an operator that is made up."""

    app: Any = None
    services: Any = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        self.services.snapshot.refresh()

        async def answered() -> httpx.Response:
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(self.app), base_url="http://127.0.0.1"
            ) as client:
                return await client.send(
                    client.build_request(
                        request.method, request.url.path, content=request.read(), headers=dict(request.headers)
                    )
                )

        found = asyncio.run(answered())
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)
