/**
 * Readers of documents: each takes what JSON said and gives a typed value, or throws `Malformed` with the key's path.
 * Keys that a reader does not know are ignored, unless their object calls them critical.
 */

import { Malformed } from "./errors.ts";
import type { Json } from "./json.ts";

export type Reader<T> = (value: Json, at: string) => T;
export type Read<R> = R extends Reader<infer T> ? T : never;
type Fields = Readonly<Record<string, Reader<unknown>>>;
type Values<F extends Fields> = { readonly [K in keyof F]: Read<F[K]> };

const MOST_CRITICAL = 32;

function wrong(at: string, what: string): Malformed {
  return new Malformed(at === "" ? `the document: ${what}` : `${at}: ${what}`);
}

/** A whole number, written without point or exponent, within bounds that are both allowed. */
export function integer(least: number, most: number): Reader<number> {
  return (value, at) => {
    if (typeof value !== "bigint") throw wrong(at, "it should be a whole number.");
    if (value < BigInt(least) || value > BigInt(most)) throw wrong(at, `it should be from ${least} to ${most}.`);
    return Number(value);
  };
}

export interface Bounds {
  readonly least?: number;
  readonly above?: number;
  readonly most?: number;
  readonly below?: number;
}

/** A real number, for which an integer may stand. */
export function real({
  least = -Infinity,
  above = -Infinity,
  most = Infinity,
  below = Infinity,
}: Bounds): Reader<number> {
  return (value, at) => {
    if (typeof value !== "bigint" && typeof value !== "number") throw wrong(at, "it should be a number.");
    const number = Number(value);
    if (!Number.isFinite(number)) throw wrong(at, "it should be a finite number.");
    if (number < least || number <= above || number > most || number >= below) {
      throw wrong(at, `${number} is outside of its bounds.`);
    }
    return number;
  };
}

/** A text of so many characters (code points, as JSON Schema counts them), of a pattern where one is given. */
export function text({
  least = 0,
  most = Infinity,
  pattern,
}: {
  least?: number;
  most?: number;
  pattern?: RegExp;
}): Reader<string> {
  return (value, at) => {
    if (typeof value !== "string") throw wrong(at, "it should be a text.");
    if (value.length < least || (value.length > most && characters(value) > most)) {
      throw wrong(at, `it has ${characters(value)} characters, and from ${least} to ${most} are allowed.`);
    }
    if (pattern !== undefined && !pattern.test(value))
      throw wrong(at, `'${value.slice(0, 40)}' is not as it should be.`);
    return value;
  };
}

function characters(value: string): number {
  let count = 0;
  for (const _ of value) count++;
  return count;
}

/** One of these values, and nothing else. */
export function oneOf<const T extends string | boolean | number>(...allowed: readonly T[]): Reader<T> {
  return (value, at) => {
    const said = typeof value === "bigint" ? Number(value) : value;
    const found = allowed.find((each) => each === said && typeof value !== "number");
    if (found === undefined) throw wrong(at, `it should be ${allowed.join(" or ")}.`);
    return found;
  };
}

export function nullOr<T>(reader: Reader<T>): Reader<T | null> {
  return (value, at) => (value === null ? null : reader(value, at));
}

export function listOf<T>(
  reader: Reader<T>,
  { least = 0, most }: { least?: number; most: number },
): Reader<readonly T[]> {
  return (value, at) => {
    if (!Array.isArray(value)) throw wrong(at, "it should be a list.");
    if (value.length < least || value.length > most) {
      throw wrong(at, `it has ${value.length} entries, and from ${least} to ${most} are allowed.`);
    }
    return (value as readonly Json[]).map((each, place) => reader(each, `${at}[${place}]`));
  };
}

/** An object with these keys, every one of them there. */
export function object<F extends Fields>(fields: F): Reader<Values<F>> {
  return (value, at) => {
    if (!(value instanceof Map)) throw wrong(at, "it should be an object.");
    refuseCritical(value, fields, at);
    const found: Record<string, unknown> = {};
    for (const [key, reader] of Object.entries(fields)) {
      const path = at === "" ? key : `${at}.${key}`;
      const said: Json | undefined = value.get(key);
      if (said === undefined) throw wrong(path, "it is missing.");
      found[key] = reader(said, path);
    }
    return found as Values<F>;
  };
}

/** What one reader reads, where `refused` finds nothing against it; else it says what. */
export function where<T>(reader: Reader<T>, refused: (value: T) => string | null): Reader<T> {
  return (value, at) => {
    const found = reader(value, at);
    const what = refused(found);
    if (what !== null) throw wrong(at, what);
    return found;
  };
}

/** One of several objects, by what one key says. */
export function byKey<C extends Readonly<Record<string, Reader<unknown>>>>(
  key: string,
  cases: C,
): Reader<Read<C[keyof C]>> {
  return (value, at) => {
    if (!(value instanceof Map)) throw wrong(at, "it should be an object.");
    const said: Json | undefined = value.get(key);
    if (typeof said !== "string" || !Object.hasOwn(cases, said)) {
      const unknown = typeof said === "string" ? `'${said.slice(0, 40)}' is unknown here` : "it is missing";
      throw wrong(at === "" ? key : `${at}.${key}`, `${unknown}; it should be ${Object.keys(cases).join(" or ")}.`);
    }
    return (cases[said] as Reader<unknown>)(value, at) as Read<C[keyof C]>;
  };
}

/** RFC 7515, section 4.1.11, as the page has it: whatever is critical was made after this version. */
function refuseCritical(value: ReadonlyMap<string, Json>, fields: Fields, at: string): void {
  const said = value.get("critical");
  if (said === undefined) return;
  const path = at === "" ? "critical" : `${at}.critical`;
  const names = listOf(text({ least: 1, most: 100 }), { most: MOST_CRITICAL })(said, path);
  if (new Set(names).size < names.length) throw wrong(path, "it names a key twice.");
  for (const name of names) {
    if (Object.hasOwn(fields, name) || name === "critical") {
      throw wrong(at, `'${name}' is a key of version 2, and so never critical.`);
    }
    if (!value.has(name)) throw wrong(at, `its key '${name}' is critical, and it is not there.`);
    throw wrong(at, `its key '${name}' is critical, and this version of tacit does not know it; a later one may.`);
  }
}
