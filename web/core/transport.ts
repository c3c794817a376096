/** Requests by `fetch`: bounded in bytes and seconds, without redirects, cookies or caches. And what drives a turn. */

import { joined } from "./bytes.ts";
import { CannotWork, saidBy } from "./errors.ts";
import type { Ask, Came, Request, Work } from "./asks.ts";
import type { Device, Turn } from "./device.ts";
import { turn } from "./session.ts";

/** Takes what a turn asks for. `pause` resolves after so many seconds. */
export interface Driver {
  request(asks: Request): Promise<Came>;
  pause(seconds: number): Promise<void>;
  work(asks: Work): Promise<Came>;
}

/** How a failure begins of which nothing is known: no answer, or one that a browser keeps from its page. */
export const UNREAD = "the server cannot be spoken to";

/** The address of a server. Throws: CannotWork for what is neither https nor on this machine. */
export function serverAddress(said: string): URL {
  let url: URL;
  try {
    url = new URL(said);
  } catch {
    throw new CannotWork(`'${said}' is no address: https://HOST is one.`);
  }
  const here = ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && here)) {
    throw new CannotWork(`'${said}' is not https, and http is for this machine alone.`);
  }
  return url;
}

/** A driver that speaks to one server by `fetch`, and works here. */
export function fetchDriver(server: URL): Driver {
  return {
    request: (asks) => fetched(server, asks),
    pause: (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds)),
    work: (asks) => within(asks.seconds, asks.run()),
  };
}

/** One turn from its beginning to its end. Throws: CannotWork. */
export async function driven(device: Device, driver: Driver): Promise<Turn> {
  const steps = turn(device);
  let next = await steps.next();
  while (!next.done) next = await steps.next(await cameOf(next.value, driver));
  return next.value;
}

async function cameOf(asks: Ask, driver: Driver): Promise<Came> {
  if (asks.kind === "request") return driver.request(asks);
  if (asks.kind === "work") return driver.work(asks);
  await driver.pause(asks.from + uniform() * (asks.to - asks.from));
  return { kind: "done", value: null };
}

/** Uniform in [0, 1), of the system's randomness: waits tell devices apart if anybody could guess them. */
export function uniform(): number {
  return (crypto.getRandomValues(new Uint32Array(1))[0] as number) / 2 ** 32;
}

/** What comes of work, or why nothing did in so many seconds. */
async function within(seconds: number, work: Promise<unknown>): Promise<Came> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Came>((resolve) => {
    timer = setTimeout(
      () => resolve({ kind: "failed", why: `it took longer than ${Math.round(seconds)} s.` }),
      1000 * seconds,
    );
  });
  const done = work.then(
    (value): Came => ({ kind: "done", value }),
    (thrown: unknown): Came => ({ kind: "failed", why: saidBy(thrown) }),
  );
  try {
    return await Promise.race([done, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function fetched(server: URL, asks: Request): Promise<Came> {
  const ends = new AbortController();
  const timer = setTimeout(() => ends.abort(), 1000 * asks.seconds);
  try {
    const answer = await fetch(new URL(asks.path, server), {
      method: asks.method,
      headers: asks.headers,
      body: asks.body,
      redirect: "error",
      credentials: "omit",
      cache: "no-store",
      referrerPolicy: "no-referrer",
      signal: ends.signal,
    });
    const { body, whole } = await read(answer, asks.mostBytes);
    return { kind: "answered", status: answer.status, headers: Object.fromEntries(answer.headers), body, whole };
  } catch (thrown) {
    const why = ends.signal.aborted ? `no answer came within ${asks.seconds} s` : causeOf(thrown);
    return { kind: "failed", why: `${UNREAD} (${why}).` };
  } finally {
    clearTimeout(timer);
  }
}

/** What comes of a body, up to `most` bytes. A longer one throws: none of it is believed. */
async function read(answer: Response, most: number): Promise<{ readonly body: Uint8Array; readonly whole: boolean }> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = answer.body?.getReader();
  while (reader !== undefined) {
    let part: ReadableStreamReadResult<Uint8Array>;
    try {
      part = await reader.read();
    } catch {
      return { body: joined(...parts), whole: false }; // cut off: what came is gone on with
    }
    if (part.done) break;
    length += part.value.length;
    if (length > most) {
      await reader.cancel();
      throw new RangeError(`its answer is longer than ${most} bytes`);
    }
    parts.push(part.value);
  }
  return { body: joined(...parts), whole: true };
}

function causeOf(thrown: unknown): string {
  return thrown instanceof Error && thrown.cause !== undefined ? saidBy(thrown.cause) : saidBy(thrown);
}
