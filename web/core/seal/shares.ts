/** Secret sharing over the integers modulo p = 2^31 - 1 (Shamir, CACM 1979; packed: Franklin and Yung, STOC 1992). */

import type { Machine } from "./machine.ts";
import type { Stream } from "./secrets.ts";

export const PRIME = 2 ** 31 - 1;
const BIG_PRIME = BigInt(PRIME);

/** A table of elements, row by row. */
export interface Elements {
  readonly rows: number;
  readonly columns: number;
  readonly values: Uint32Array;
}

/** A number modulo p, from 0 on. */
export function modulo(value: number): number {
  return ((value % PRIME) + PRIME) % PRIME;
}

/** Uniform elements: 31 random bits each, drawn again, all that have to be together, where they are p. */
export async function uniform(count: number, draw: Stream): Promise<Uint32Array> {
  const found = elementsIn(await draw(4 * count));
  for (;;) {
    const again: number[] = [];
    for (let place = found.indexOf(PRIME); place >= 0; place = found.indexOf(PRIME, place + 1)) again.push(place);
    if (again.length === 0) return found;
    const drawn = elementsIn(await draw(4 * again.length));
    again.forEach((place, at) => (found[place] = drawn[at]!));
  }
}

/** The low 31 bits of words of 4 bytes. */
function elementsIn(bytes: Uint8Array): Uint32Array {
  return wordsIn(bytes).map((each) => each & PRIME);
}

/** Words of 4 bytes, the lowest first on every machine. */
export function wordsIn(bytes: Uint8Array): Uint32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Uint32Array.from({ length: bytes.length / 4 }, (_, place) => view.getUint32(4 * place, true));
}

/** Elements in 4 bytes each. */
export function bytesOf(elements: Uint32Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4 * elements.length);
  const view = new DataView(bytes.buffer);
  elements.forEach((each, place) => view.setUint32(4 * place, each, true));
  return bytes;
}

/** Weights (at, nodes): values at `at` of a polynomial of degree below the number of nodes, from those at the nodes. */
export function lagrange(nodes: readonly number[], at: readonly number[]): Elements {
  const times = (one: bigint, other: bigint): bigint => (one * other) % BIG_PRIME;
  const less = (one: number, other: number): bigint => BigInt(modulo(one - other));
  const values = at.flatMap((point) =>
    nodes.map((node, place) => {
      const others = nodes.filter((_, other) => other !== place);
      const above = others.reduce((product, other) => times(product, less(point, other)), 1n);
      const below = others.reduce((product, other) => times(product, less(node, other)), 1n);
      return Number(times(above, inverse(below)));
    }),
  );
  return { rows: at.length, columns: nodes.length, values: Uint32Array.from(values) };
}

/** 1 / a, by Fermat. */
function inverse(element: bigint): bigint {
  let [result, power] = [1n, element];
  for (let exponent = BIG_PRIME - 2n; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = (result * power) % BIG_PRIME;
    power = (power * power) % BIG_PRIME;
  }
  return result;
}

/** Products of tables, modulo p. */
export type Combine = (weights: Elements, values: Elements) => Elements;

/** The products of a machine, in room that the next one takes again. */
export function combining({ loops, room, words }: Machine): Combine {
  let held = { at: 0, words: 0 };
  return (weights, values) => {
    const made = weights.rows * values.columns;
    const needed = weights.values.length + values.values.length + made;
    if (needed > held.words) held = { at: room(4 * needed), words: needed };
    const right = held.at + 4 * weights.values.length;
    const out = right + 4 * values.values.length;
    words(held.at, weights.values.length).set(weights.values);
    words(right, values.values.length).set(values.values);
    loops.combine(held.at, weights.rows, weights.columns, right, values.columns, out);
    return { rows: weights.rows, columns: values.columns, values: words(out, made).slice() };
  };
}

/**
 * Shares (parties, columns) of secrets (packed, columns), of which `hidden` parties learn nothing.
 *
 * Column by column the polynomial takes the secrets at -1, ..., -packed and random elements at `hidden` points more.
 */
export async function split(
  secrets: Elements,
  parties: number,
  hidden: number,
  draw: Stream,
  combine: Combine,
): Promise<Elements> {
  const count = secrets.rows + hidden;
  const values = new Uint32Array(count * secrets.columns);
  values.set(secrets.values);
  values.set(await uniform(hidden * secrets.columns, draw), secrets.values.length);
  const nodes = Array.from({ length: count }, (_, place) => PRIME - 1 - place);
  const weights = lagrange(nodes, pointsOf(parties));
  return combine(weights, { rows: count, columns: secrets.columns, values });
}

/** Where shares lie on polynomials. */
export function pointsOf(parties: number): readonly number[] {
  return Array.from({ length: parties }, (_, place) => place + 1);
}

/** One row of a table. */
export function rowOf(table: Elements, row: number): Uint32Array {
  return table.values.subarray(row * table.columns, (row + 1) * table.columns);
}
