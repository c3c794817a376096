/** What a turn asks for, and what came of it: requests, pauses, work. No network and no timers here. */

import { sha256, toHex, utf8 } from "./bytes.ts";
import { readProblem } from "./documents.ts";
import { Malformed, Refused } from "./errors.ts";

type Bytes = Uint8Array<ArrayBuffer>;

export interface Request {
  readonly kind: "request";
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Bytes | null;
  /** No more is read of an answer, and none is waited for longer. */
  readonly mostBytes: number;
  readonly seconds: number;
}

/** A wait of so many seconds, drawn uniformly between the two. */
export interface Pause {
  readonly kind: "pause";
  readonly from: number;
  readonly to: number;
}

/** Work on models and text, which a driver may do elsewhere; it is ended after so many seconds. */
export interface Work {
  readonly kind: "work";
  readonly seconds: number;
  run(): Promise<unknown>;
}

export type Ask = Request | Pause | Work;

/** An answer of a server. `whole` is false where it was cut off: then `body` is what came of it. */
export interface Answered {
  readonly kind: "answered";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>; // names in small letters
  readonly body: Uint8Array;
  readonly whole: boolean;
}

export interface Failed {
  readonly kind: "failed";
  readonly why: string;
  /** Whether it is certain that nothing of a request reached anybody. */
  readonly unreached?: boolean;
}

export interface Done {
  readonly kind: "done";
  readonly value: unknown;
}

export type Came = Answered | Failed | Done;

/** A part of a turn: it yields what it asks for, is sent what came, and returns T. */
export type Steps<T> = AsyncGenerator<Ask, T, Came>;

/** No answer that the protocol allows. */
export class Unanswered extends Error {}

const MOST_JSON = 16 * 2 ** 20; // of an answer in JSON: a log of 131,072 entries has 10 MB
const ANSWER_SECONDS = 60;
const FILE_SECONDS = 600;
const RANGES = 8; // pieces that a file may come in

interface Says {
  readonly json?: string;
  readonly report?: Bytes;
  readonly sha?: string;
  readonly secret?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly mostBytes?: number;
  readonly seconds?: number;
}

export function request(method: Request["method"], path: string, says: Says = {}): Request {
  const headers: Record<string, string> = { ...says.headers };
  if (says.json !== undefined) headers["content-type"] = "application/json";
  if (says.report !== undefined) headers["content-type"] = "application/octet-stream";
  if (says.sha !== undefined) headers["x-content-sha256"] = says.sha;
  if (says.secret !== undefined) headers["authorization"] = `Bearer ${says.secret}`;
  const body = says.report ?? (says.json === undefined ? null : utf8(says.json));
  return {
    kind: "request",
    method,
    path,
    headers,
    body,
    mostBytes: says.mostBytes ?? MOST_JSON,
    seconds: says.seconds ?? ANSWER_SECONDS,
  };
}

/** One answer, whole. Throws: Unanswered. */
export async function* asked(says: Request): Steps<Answered> {
  const came = yield says;
  if (came.kind === "failed") throw new Unanswered(came.why);
  if (came.kind !== "answered" || !came.whole) throw new Unanswered("an answer was cut off.");
  return came;
}

export function refuseStatus(answer: Answered, wanted: number): void {
  if (answer.status !== wanted) throw new Unanswered(problemOf(answer));
}

/** What an answer says. Throws: Unanswered where it is none of the protocol's: nobody signed that. */
export function understood<T>(answer: Answered, read: (body: Uint8Array) => T): T {
  try {
    return read(answer.body);
  } catch (thrown) {
    if (thrown instanceof Malformed) throw new Unanswered(`an answer is none of the protocol's: ${thrown.message}`);
    throw thrown;
  }
}

/** A file by its digest, in as many pieces as it takes. Throws: Unanswered; Refused where it is another. */
export async function* file({
  path,
  bytes,
  sha256: wanted,
}: {
  path: string;
  bytes: number;
  sha256: string;
}): Steps<Bytes> {
  if (path !== `/v1/models/${wanted}`) throw new Refused("a file's path is not its digest.");
  const whole = new Uint8Array(bytes);
  let have = 0;
  for (let piece = 0; piece < RANGES && have < bytes; piece++) {
    const ranged = have > 0 ? { range: `bytes=${have}-` } : {};
    const answer = yield request("GET", path, { headers: ranged, mostBytes: bytes, seconds: FILE_SECONDS });
    if (answer.kind !== "answered") throw new Unanswered(answer.kind === "failed" ? answer.why : "no file came.");
    if (answer.status !== 206) refuseStatus(answer, 200);
    if (answer.status === 200) have = 0; // all of it once more
    if (have + answer.body.length > bytes) throw new Unanswered("a file is longer than it should be.");
    whole.set(answer.body, have);
    have += answer.body.length;
    if (answer.whole && have < bytes) break;
  }
  if (have < bytes) throw new Unanswered(`${have} of ${bytes} bytes of a file came.`);
  if (toHex(await sha256(whole)) !== wanted) throw new Unanswered("a file is not the one that was named.");
  return whole;
}

// What a server says once and for all of a report: the same bytes would get the same answer.
const FINAL: readonly string[] = [
  "malformed",
  "version",
  "credential",
  "not-found",
  "method",
  "other-report",
  "late",
  "length",
  "too-large",
  "encoding",
  "range",
  "refused",
  "forbidden",
];

/** Whether the server itself answers so, and would again. Pages of others on the way are no such answers. */
export function isFinal(answer: Answered): boolean {
  try {
    const { type, status } = readProblem(answer.body);
    return status === answer.status && FINAL.includes(type.replace("tacit:", ""));
  } catch {
    return false;
  }
}

/** How long a server asks to wait, in seconds; null where it says nothing. */
export function retryAfter(came: Came): number | null {
  const said = came.kind === "answered" ? came.headers["retry-after"] : undefined;
  return said !== undefined && /^[0-9]{1,4}$/.test(said) ? Number(said) : null;
}

/** What an answer says that is no success. */
export function problemOf(answer: Answered): string {
  try {
    const { type, detail } = readProblem(answer.body);
    return `${type}: ${detail}`;
  } catch {
    return `status ${answer.status}.`;
  }
}
