/** A small static server of the built page, with the headers that keep a page to itself. */

import { readFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { gzipSync } from "node:zlib";

const POLICY = [
  "default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "worker-src 'self'", "connect-src 'self'", "style-src 'self'",
  "img-src 'self'", "manifest-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  "require-trusted-types-for 'script'", "trusted-types tacit",
].join("; ");

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

export async function served(folder: string, protocol: Protocol = async () => null): Promise<Served> {
  const sent = new Map<string, number>();
  const seen: Served["seen"] = [];
  const server = createServer((asked, answer) => {
    const path = new URL(asked.url ?? "/", "http://here").pathname;
    const headers = { "content-security-policy": POLICY, "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp", "referrer-policy": "no-referrer", "x-content-type-options": "nosniff" };
    const said = async (): Promise<void> => {
      const parts: Buffer[] = [];
      for await (const part of asked) parts.push(part as Buffer);
      const came = { method: asked.method ?? "", path: asked.url ?? "", headers: asked.headers, body: Buffer.concat(parts) };
      seen.push(came);
      if (path.startsWith("/v1/")) {
        const found: ProtocolAnswer = (await protocol(came)) ?? { status: 404, body: "{}" };
        if (found.cut !== undefined) {
          const body = Buffer.from(found.body);
          if (found.cut === "half") {
            answer.writeHead(found.status, { ...headers, "content-type": "application/json", "content-length": body.length });
            await new Promise((resolve) => answer.write(body.subarray(0, body.length / 2), resolve));
          }
          asked.socket.destroy();
          return;
        }
        answer.writeHead(found.status, { ...headers, "content-type": "application/json" }).end(found.body);
        return;
      }
      const name = normalize(path === "/" ? "index.html" : path.slice(1));
      if (name.startsWith("..")) throw new Error("outside");
      const body = gzipSync(await readFile(join(folder, name)));
      sent.set(path, body.length);
      answer.writeHead(200, { ...headers, "content-type": TYPES[extname(name)] ?? "application/octet-stream", "content-encoding": "gzip" }).end(body);
    };
    said().catch(() => answer.writeHead(404, headers).end());
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
