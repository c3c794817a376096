import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";

import type { Answered, Request } from "../core/asks.ts";
import { CannotWork } from "../core/errors.ts";
import { fetchDriver, serverAddress } from "../core/transport.ts";

let running: Server | null = null;

afterEach(() => {
  running?.closeAllConnections();
  running?.close();
});

async function served(answer: Parameters<typeof createServer>[1]): Promise<URL> {
  const server = createServer(answer as never);
  running = server;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return serverAddress(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

function asks(changed: Partial<Request> = {}): Request {
  return {
    kind: "request",
    method: "GET",
    path: "/v1/log",
    headers: {},
    body: null,
    mostBytes: 100,
    seconds: 5,
    ...changed,
  };
}

test("what is asked arrives as it is, and the answer comes back", async () => {
  const seen: { method?: string; headers?: object; body?: string } = {};
  const server = await served((incoming, outgoing) => {
    let body = "";
    incoming.on("data", (part) => (body += part));
    incoming.on("end", () => {
      Object.assign(seen, { method: incoming.method, headers: incoming.headers, body });
      outgoing.writeHead(201, { "retry-after": "7" }).end("hello");
    });
  });
  const headers = { "content-type": "application/json", authorization: "Bearer 02" };
  const came = await fetchDriver(server).request(
    asks({ method: "POST", headers, body: new TextEncoder().encode("{}") }),
  );
  expect(seen).toMatchObject({ method: "POST", body: "{}", headers: { ...headers, "content-length": "2" } });
  expect(Object.keys(seen.headers ?? {})).not.toContain("cookie");
  const { status, headers: got, body, whole } = came as Answered;
  expect([status, got["retry-after"], new TextDecoder().decode(body), whole]).toEqual([201, "7", "hello", true]);
});

test("nothing is read beyond the bytes that were allowed", async () => {
  const server = await served((_, outgoing) => outgoing.writeHead(200).end("x".repeat(101)));
  const came = await fetchDriver(server).request(asks());
  expect(came).toMatchObject({ kind: "failed", why: expect.stringContaining("longer than 100 bytes") });
});

test("none is waited for longer than the seconds that were allowed, a byte now and then or none", async () => {
  for (const first of ["", "x"]) {
    const server = await served((_, outgoing) => {
      outgoing.writeHead(200);
      outgoing.write(first);
      setInterval(() => outgoing.destroyed || outgoing.write(first), 100).unref();
    });
    const began = performance.now();
    const came = await fetchDriver(server).request(asks({ seconds: 0.5 }));
    expect(performance.now() - began).toBeLessThan(3000);
    expect(came.kind === "failed" || !(came as Answered).whole).toBe(true);
  }
});

test("a redirect is not followed", async () => {
  let other = 0;
  const server = await served((incoming, outgoing) => {
    if (incoming.url === "/elsewhere") other++;
    outgoing.writeHead(302, { location: "/elsewhere" }).end();
  });
  expect((await fetchDriver(server).request(asks())).kind).toBe("failed");
  expect(other).toBe(0);
});

test("what was cut off is kept, so that it can be gone on with", async () => {
  const server = await served((_, outgoing) => {
    outgoing.writeHead(200, { "content-length": "50" });
    outgoing.write("12345", () => setTimeout(() => outgoing.destroy(), 50));
  });
  const came = (await fetchDriver(server).request(asks())) as Answered;
  expect([new TextDecoder().decode(came.body), came.whole]).toEqual(["12345", false]);
});

test("work is bounded, and what it throws is said", async () => {
  const driver = fetchDriver(new URL("http://127.0.0.1:9"));
  const work = (run: () => Promise<unknown>) => driver.work({ kind: "work", seconds: 0.1, run });
  expect(await work(async () => 3)).toEqual({ kind: "done", value: 3 });
  expect(await work(() => Promise.reject(new Error("no text")))).toEqual({ kind: "failed", why: "no text" });
  expect(await work(() => new Promise(() => undefined))).toMatchObject({ kind: "failed" });
  expect((await driver.request(asks())).kind).toBe("failed");
});

test("addresses: https, or this machine", () => {
  expect(serverAddress("https://fl.example").hostname).toBe("fl.example");
  expect(serverAddress("http://[::1]:8470").port).toBe("8470");
  for (const said of ["http://fl.example", "ftp://127.0.0.1", "fl.example", "http://127.0.0.1.example", "file:///x"]) {
    expect(() => serverAddress(said)).toThrow(CannotWork);
  }
});
