/**
 * JSON as version 2 of the protocol has it, which `JSON.parse` does not keep to: no key twice in an object, no depth
 * beyond 64, no endless integers. Whole numbers come back as `bigint`, so that none is rounded before it is compared
 * with its bounds.
 */

import { Malformed } from "./errors.ts";

export type JsonObject = ReadonlyMap<string, Json>;
export type Json = null | boolean | string | number | bigint | readonly Json[] | JsonObject;

const MOST_DEPTH = 64; // below the outermost object
const MOST_DIGITS = 300; // of an integer: a parser that makes one is quadratic in them
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const SPACE = /[ \t\n\r]*/y;
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

/** The text of bytes. Throws: Malformed where they are no UTF-8. A byte order mark stays, and is then no JSON. */
export function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Malformed("it is not UTF-8.");
  }
}

/** What a JSON text says. Throws: Malformed, which says what is wrong and where. */
export function parseJson(text: string): Json {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.end();
  return value;
}

class Reader {
  private place = 0;
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  value(depth: number): Json {
    this.skip(SPACE);
    const first = this.text[this.place];
    if (first === "{") return this.object(this.deeper(depth));
    if (first === "[") return this.list(this.deeper(depth));
    if (first === '"') return this.string();
    for (const [word, meant] of [
      ["true", true],
      ["false", false],
      ["null", null],
    ] as const) {
      if (this.text.startsWith(word, this.place)) {
        this.place += word.length;
        return meant;
      }
    }
    return this.number();
  }

  end(): void {
    this.skip(SPACE);
    if (this.place < this.text.length) throw this.wrong("something follows its end");
  }

  private deeper(depth: number): number {
    if (depth > MOST_DEPTH) throw new Malformed(`its objects are nested too deep, beyond ${MOST_DEPTH}.`);
    this.place++;
    return depth + 1;
  }

  private object(depth: number): JsonObject {
    const found = new Map<string, Json>();
    if (this.closes("}")) return found;
    for (;;) {
      this.skip(SPACE);
      if (this.text[this.place] !== '"') throw this.wrong("a key is missing");
      const key = this.string();
      if (found.has(key)) throw new Malformed(`an object has the key '${key.slice(0, 40)}' twice.`);
      this.skip(SPACE);
      if (this.text[this.place++] !== ":") throw this.wrong("a colon is missing");
      found.set(key, this.value(depth));
      if (this.closes("}")) return found;
      if (this.text[this.place++] !== ",") throw this.wrong("a comma is missing");
    }
  }

  private list(depth: number): readonly Json[] {
    const found: Json[] = [];
    if (this.closes("]")) return found;
    for (;;) {
      found.push(this.value(depth));
      if (this.closes("]")) return found;
      if (this.text[this.place++] !== ",") throw this.wrong("a comma is missing");
    }
  }

  private string(): string {
    let found = "";
    this.place++;
    for (;;) {
      found += this.skip(PLAIN);
      const next = this.text[this.place++];
      if (next === '"') break;
      if (next !== "\\") throw this.wrong("a string has no end, or a control character");
      found += this.escaped();
    }
    // A half of a pair is no text: it has no UTF-8 that could be signed.
    if (/\p{Surrogate}/u.test(found)) throw this.wrong("a string has half of a surrogate pair");
    return found;
  }

  private escaped(): string {
    const letter = this.text[this.place++] ?? "";
    if (letter === "u") {
      const digits = this.text.slice(this.place, this.place + 4);
      if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw this.wrong("an escape has no four digits");
      this.place += 4;
      return String.fromCharCode(Number.parseInt(digits, 16));
    }
    const meant = ESCAPES[letter];
    if (meant === undefined) throw this.wrong("an escape is unknown");
    return meant;
  }

  private number(): number | bigint {
    NUMBER.lastIndex = this.place;
    const found = NUMBER.exec(this.text);
    if (found === null) throw this.wrong("a value is missing");
    this.place = NUMBER.lastIndex;
    if (found[1] === undefined && found[2] === undefined) {
      const digits = found[0].replace("-", "").length;
      if (digits > MOST_DIGITS) {
        throw new Malformed(`it has a number of ${digits} digits, and none of more than ${MOST_DIGITS} is meant.`);
      }
      return BigInt(found[0]);
    }
    const value = Number(found[0]);
    if (!Number.isFinite(value)) throw new Malformed(`${found[0].slice(0, 40)} is no finite number.`);
    return value;
  }

  private closes(bracket: string): boolean {
    this.skip(SPACE);
    if (this.text[this.place] !== bracket) return false;
    this.place++;
    return true;
  }

  private skip(pattern: RegExp): string {
    pattern.lastIndex = this.place;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.place += found.length;
    return found;
  }

  private wrong(what: string): Malformed {
    return new Malformed(`it is no JSON: ${what}, at character ${this.place}.`);
  }
}
