/** The documents of a transparency log, apart: the service worker reads these, and no others. */

import { parseJson, textOf } from "./json.ts";
import { integer, listOf, object, text, type Read, type Reader } from "./schema.ts";

export const MOST_COUNT = 1_000_000_000;

export const digits = (count: number): Reader<string> => text({ pattern: new RegExp(`^[0-9a-f]{${count}}$`) });
export const sha256 = digits(64);
export const signedText = text({ least: 2, most: 2_097_152 });
export const signed = object({ document: signedText, signature: digits(128) });
const treeHead = object({ size: integer(1, MOST_COUNT), root: sha256 });
const shownLog = object({
  head: signed,
  entries: listOf(text({ pattern: /^[a-z][a-z-]{0,30}( [0-9]{1,10})? [0-9a-f]{64}$/ }), { most: 131_072 }),
});

export type Signed = Read<typeof signed>;
export type TreeHead = Read<typeof treeHead>;
export type ShownLog = Read<typeof shownLog>;

/** Reads a JSON text. It throws `Malformed`, which names the key. */
export function of<T>(reader: Reader<T>): (said: string | Uint8Array) => T {
  return (said) => reader(parseJson(typeof said === "string" ? said : textOf(said)), "");
}

export const readTreeHead = of(treeHead);
export const readShownLog = of(shownLog);
