/** `tacit serve` in Python, for a page from elsewhere: a round of two reports, of which another device sends one. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import type { Page } from "playwright-core";

/** A Python that has tacit, and the repository in its path; empty: none. */
export const PYTHON = process.env["TACIT_PYTHON"] ?? "";
const SCRIPT = fileURLToPath(new URL("real_server.py", import.meta.url));
const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

export interface RealServer {
  readonly address: string;
  readonly key: string;
  /** The folder of the exported model whose words are those of the round. */
  readonly phone: string;
  /** What is said when the round is released. */
  readonly released: Promise<{ readonly finished: boolean; readonly complaints: readonly string[] }>;
  /** Ends it, released or not. */
  close(): Promise<void>;
}

/** Serves in `folder`; pages of `origins` may be devices. Throws: Error with what Python said where it does not begin. */
export async function realServer(folder: string, origins: readonly string[]): Promise<RealServer> {
  const path = [fileURLToPath(new URL("../../src", import.meta.url)), REPOSITORY, process.env["PYTHONPATH"] ?? ""].join(":");
  const child = spawn(PYTHON, [SCRIPT, folder, ...origins], { env: { ...process.env, PYTHONPATH: path }, stdio: ["ignore", "pipe", "pipe"] });
  const complaints: string[] = [];
  child.stderr.on("data", (part: Buffer) => complaints.push(part.toString()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async <T>(): Promise<T> => {
    const found = await lines.next();
    if (found.done) throw new Error(`the server ended: ${complaints.join("").slice(-2000)}`);
    return JSON.parse(found.value) as T;
  };
  const { server, key, phone } = await line<{ server: string; key: string; phone: string }>();
  const released = line<{ finished: boolean; complaints: string[] }>();
  released.catch(() => {}); // of a server that is ended before
  return {
    address: server,
    key,
    phone,
    released,
    close: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
}

/** What the page says of its turn, which is asked for again as long as the round has not begun. */
export async function turnOf(page: Page): Promise<string> {
  const said = (await page.textContent("#turn")) ?? "";
  if (said.includes("nothing to do") && (await page.isEnabled("#turn-now"))) await page.click("#turn-now");
  return said;
}
