/** A small static host of the built page, with the headers that the build wrote for it. */

import { readFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { gzipSync } from "node:zlib";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".wasm": "application/wasm",
  ".json": "application/json", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json",
};

export interface Came {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** `cut`: half of the body comes, or nothing at all, and the connection breaks. */
export interface ProtocolAnswer {
  readonly status: number;
  readonly body: string | Uint8Array;
  readonly cut?: "half" | "whole";
}

/** Whatever answers a path of the protocol; null: 404. */
export type Protocol = (came: Came) => Promise<ProtocolAnswer | null>;

export interface Served {
  readonly address: string;
  /** Bytes that were sent for each path, compressed. */
  readonly sent: Map<string, number>;
  /** Whatever came with each request. */
  readonly seen: Came[];
  close(): Promise<void>;
}

/** Serves `folder`. headers: of every answer; left out, those that `_headers` in it says. */
export async function served(folder: string, protocol: Protocol = async () => null, headers?: Readonly<Record<string, string>>): Promise<Served> {
  const sent = new Map<string, number>();
  const seen: Served["seen"] = [];
  const server = createServer((asked, answer) => {
    const path = new URL(asked.url ?? "/", "http://here").pathname;
    const said = async (): Promise<void> => {
      const parts: Buffer[] = [];
      for await (const part of asked) parts.push(part as Buffer);
      const came = { method: asked.method ?? "", path: asked.url ?? "", headers: asked.headers, body: Buffer.concat(parts) };
      seen.push(came);
      if (path.startsWith("/v1/")) {
        const found: ProtocolAnswer = (await protocol(came)) ?? { status: 404, body: "{}" };
        const head = { ...(headers ?? (await headersOf(folder))), "content-type": "application/json" };
        if (found.cut !== undefined) {
          const body = Buffer.from(found.body);
          if (found.cut === "half") {
            answer.writeHead(found.status, { ...head, "content-length": body.length });
            await new Promise((resolve) => answer.write(body.subarray(0, body.length / 2), resolve));
          }
          asked.socket.destroy();
          return;
        }
        answer.writeHead(found.status, head).end(found.body);
        return;
      }
      const name = normalize(path === "/" ? "index.html" : path.slice(1));
      if (name.startsWith("..")) throw new Error("outside");
      const body = gzipSync(await readFile(join(folder, name)));
      sent.set(path, body.length);
      answer.writeHead(200, { ...(headers ?? (await headersOf(folder))), "content-type": TYPES[extname(name)] ?? "application/octet-stream", "content-encoding": "gzip" }).end(body);
    };
    said().catch(() => answer.writeHead(404).end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    sent,
    seen,
    close: () => new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    }),
  };
}

/** What `_headers` says of every file. */
async function headersOf(folder: string): Promise<Readonly<Record<string, string>>> {
  const [path, ...lines] = (await readFile(join(folder, "_headers"), "utf8")).trimEnd().split("\n");
  if (path !== "/*") throw new Error(`_headers is of ${path}`);
  return Object.fromEntries(lines.map((line) => line.trim().split(/: (.*)/s).slice(0, 2) as [string, string]));
}
