/** A page's bundle: its files by SHA-256, and the digest of them all, which stands in a transparency log. */

import { sha256, toHex, utf8 } from "./bytes.ts";
import { Malformed, Refused } from "./errors.ts";
import { parseJson, type Json, type JsonObject } from "./json.ts";
import { bundleLine, checkLog, longerOf, type KeptLog } from "./log.ts";
import { readShownLog } from "./log_documents.ts";

/** `bundle.json`. */
export interface Bundle {
  readonly digest: string;
  /** SHA-256 of each, by its name. */
  readonly files: ReadonlyMap<string, string>;
  /** The public key of the log that has to show it; null: none does. */
  readonly publisher: string | null;
}

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*(\/[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*)*$/;
const DIGEST = /^[0-9a-f]{64}$/;
const MOST_FILES = 1000;

/** SHA-256 of the lines `sha256  name`, in the order of the names. */
export async function digestOf(files: ReadonlyMap<string, string>): Promise<string> {
  const lines = [...files.keys()].sort().map((name) => `${files.get(name)}  ${name}\n`);
  return toHex(await sha256(utf8(lines.join(""))));
}

/** The text of a `bundle.json`. */
export function writtenBundle({ digest, files, publisher }: Bundle): string {
  return JSON.stringify({ digest, files: Object.fromEntries(files), publisher }, null, 1);
}

/** Reads a `bundle.json`. Throws: Malformed where it is none, or its digest is not that of its files. */
export async function readBundle(text: string): Promise<Bundle> {
  const said = object(parseJson(text));
  const files = new Map<string, string>();
  for (const [name, value] of object(said.get("files"))) {
    if (!NAME.test(name)) throw new Malformed(`'${name.slice(0, 40)}' is no name of a file of a bundle.`);
    files.set(name, digits(value));
  }
  if (files.size === 0 || files.size > MOST_FILES) throw new Malformed(`a bundle has from 1 to ${MOST_FILES} files, and this one ${files.size}.`);
  const digest = digits(said.get("digest"));
  if ((await digestOf(files)) !== digest) throw new Malformed("a bundle's digest is not that of its files.");
  const publisher = said.get("publisher") ?? null;
  return { digest, files, publisher: publisher === null ? null : digits(publisher) };
}

/**
 * What is kept of the publisher's log once it has shown that a bundle may take another's place.
 *
 * have: the digest of the bundle that is there; null: none. Throws: Refused where the head is signed by another, the
 * bundle is not in the log, or stands before the one that is there; TwoLogs where the log does not begin as the kept one.
 */
export async function admitted(digest: string, have: string | null, kept: KeptLog | null, shownLog: string, publisher: string): Promise<KeptLog> {
  const shown = readShownLog(shownLog);
  await checkLog(shown, publisher);
  const at = shown.entries.indexOf(bundleLine(digest));
  if (at < 0) throw new Refused(`the log does not have the bundle ${digest.slice(0, 16)}....`);
  const longer = longerOf(kept, shown);
  const before = have === null ? -1 : longer.entries.indexOf(bundleLine(have));
  if (at < before) throw new Refused(`the bundle ${digest.slice(0, 16)}... is older than the one that is here.`);
  return longer;
}

function digits(value: Json | undefined): string {
  if (typeof value !== "string" || !DIGEST.test(value)) throw new Malformed("a bundle names files by 64 digits of SHA-256.");
  return value;
}

function object(value: Json | undefined): JsonObject {
  if (!(value instanceof Map)) throw new Malformed("this is no bundle.");
  return value as JsonObject;
}
