/**
 * An update as whole numbers that may be added: clipped, scaled, rotated by a random public matrix, rounded at random
 * (arXiv:2305.18465, Algorithm 2; docs/secure-aggregation.md).
 *
 * float32 and float64 in one order of additions, so that two programs with the same random bytes get the same integers.
 */

import { fromHex } from "./bytes.ts";
import { Refused } from "./errors.ts";
import { machineOf, type Machine } from "./seal/machine.ts";
import { bitLength } from "./seal/parameters.ts";
import { KEY_BYTES, random, stream, type Draw } from "./seal/secrets.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const ATTEMPTS = 64; // of rounding; all are too long with probability below e^-32
const BELOW = 1 - 1e-9; // of the clip norm, for what is rounded toward zero: more than a sum of squares in float64 errs
const EXACT = 2 ** 24; // whole numbers that float32 has all of
const EXACT_SQUARED = 2 ** 62; // a squared norm in 64 bits with sign
const WORD = 32; // bits of a word
const LOSS_STEPS = 2 ** 15; // of a loss, to half its bound
const CHUNK = 2 ** 16; // coordinates that are rounded at a time

/** The numbers of an encoding, under the names of the document `EncodedSum`. */
export interface EncodingNumbers {
  readonly parameters: number;
  readonly dimension: number;
  readonly clip_norm: number;
  readonly scale: number;
  readonly report_goal: number;
  readonly sigmas: number;
  readonly margin: number;
}

/** C_inf: the largest magnitude of an encoded coordinate. */
export function largestOf({ sigmas, scale, clip_norm, dimension }: EncodingNumbers): number {
  return Math.ceil((sigmas * scale * clip_norm) / Math.sqrt(dimension));
}

/** The largest squared norm of an encoded update, before its shift. */
export function longestSquaredOf({ clip_norm, dimension, scale }: EncodingNumbers): number {
  const rounding = Math.sqrt(dimension) / (2 * scale);
  const bound = Math.sqrt(clip_norm * clip_norm + rounding * rounding + (clip_norm / scale + rounding / scale)) * scale;
  return Math.floor(bound * bound * (1 - 1e-15)); // less than rounding of the product
}

/** Bits of a coordinate of the sum: of 2 (C_inf n + margin). */
export function bitsOf(encoding: EncodingNumbers): number {
  return bitLength(2n * (BigInt(largestOf(encoding)) * BigInt(encoding.report_goal) + BigInt(encoding.margin)));
}

/** Throws: Refused for numbers that are no encoding, or are finer than the arithmetic here tells. */
export function refuseEncoding(encoding: EncodingNumbers): void {
  const { parameters, dimension } = encoding;
  if (parameters > dimension)
    throw new Refused(`an encoding of ${dimension} coordinates does not hold ${parameters} parameters.`);
  factorsOf(dimension);
  const largest = largestOf(encoding);
  const longest = longestSquaredOf(encoding);
  if (!(largest >= 1 && largest <= EXACT) || !(longest <= EXACT_SQUARED)) {
    throw new Refused(`an encoding with coordinates up to ${largest} is finer than float32 tells.`);
  }
  if (bitsOf(encoding) > WORD)
    throw new Refused(`the encoding's sums take ${bitsOf(encoding)} bits a coordinate, and words have ${WORD}.`);
}

/** What stands behind the coordinates: 1, the bit where it is asked for, the digits of the loss, the lowest first. */
export function behindOf(
  encoding: EncodingNumbers,
  short: boolean | null,
  loss: BoundedLoss | null,
): readonly number[] {
  const base = 2 * largestOf(encoding) + 1;
  const whole = loss === null ? 0 : LOSS_STEPS + Math.trunc(loss.value * ((2 * LOSS_STEPS) / loss.bound));
  const digits = Array.from(
    { length: loss === null ? 0 : lossDigits(base) },
    (_, place) => Math.floor(whole / base ** place) % base,
  );
  return [1, ...(short === null ? [] : [Number(short)]), ...digits];
}

/** A mean training loss, clipped to [0, bound], less half of the bound. */
export interface BoundedLoss {
  readonly value: number;
  readonly bound: number;
}

/** Digits of the largest loss. */
function lossDigits(base: number): number {
  let digits = 0;
  for (let rest = 2 * LOSS_STEPS; rest > 0; rest = Math.floor(rest / base)) digits++;
  return digits;
}

/** Words of a report: the coordinates, and what stands behind them. */
export function lengthOf(encoding: EncodingNumbers, short: boolean, loss: boolean): number {
  return encoding.dimension + behindOf(encoding, short ? false : null, loss ? { value: 0, bound: 1 } : null).length;
}

/**
 * A report's words: the encoded update (dimension,), then `behindOf`.
 *
 * compiled: `web/lattice/lattice.wasm`; signs: the task's 64 digits. draw gives 32 bytes, once. Throws: as `encode`.
 */
export async function encodedReport(
  compiled: WebAssembly.Module,
  update: Float32Array,
  encoding: EncodingNumbers & { readonly signs: string },
  short: boolean | null,
  loss: BoundedLoss | null,
  draw: Draw = random,
): Promise<Uint32Array<ArrayBuffer>> {
  const behind = behindOf(encoding, short, loss);
  const words = new Uint32Array(encoding.dimension + behind.length);
  words.set(await encode(compiled, update, encoding, fromHex(encoding.signs), draw(KEY_BYTES)));
  words.set(behind, encoding.dimension);
  return words;
}

/**
 * An update (parameters,) as words (dimension,) from 0 to 2 C_inf.
 *
 * signs: the round's public seed of 32 bytes; rounding: 32 secret bytes, for one update. Less the shift C_inf the
 * squared norm is within `longestSquaredOf`, always: what is too long after ATTEMPTS draws is rounded toward zero.
 * Throws: Refused for an encoding that is none, RangeError for an update that is not finite or of another length.
 */
export async function encode(
  compiled: WebAssembly.Module,
  update: Float32Array,
  encoding: EncodingNumbers,
  signs: Bytes,
  rounding: Bytes,
): Promise<Uint32Array<ArrayBuffer>> {
  refuseEncoding(encoding);
  const { dimension, clip_norm, scale } = encoding;
  const largest = largestOf(encoding);
  const longest = BigInt(longestSquaredOf(encoding));
  const machine = await machineOf(compiled);
  const { loops, room, words } = machine;
  const vector = await rotated(machine, update, encoding, signs);
  const [draws, whole] = [room(4 * CHUNK), room(4 * dimension)];
  const draw = stream(rounding);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    let squared = 0n;
    for (let at = 0; at < dimension; at += CHUNK) {
      const count = Math.min(CHUNK, dimension - at);
      machine.bytes(draws, 4 * count).set(await draw(4 * count));
      squared += loops.roundAtRandom(vector + 4 * at, count, draws, largest, whole + 4 * at);
    }
    if (squared <= longest) return words(whole, dimension).slice();
  }
  const norm = Math.sqrt(squaredNorm(machine, vector, dimension));
  const most = BELOW * scale * clip_norm;
  loops.roundToZero(vector, dimension, norm > most ? most / norm : 1, largest, whole);
  return words(whole, dimension).slice();
}

/** The address of the clipped, scaled, rotated update (dimension,), each coordinate within C_inf. */
async function rotated(
  machine: Machine,
  update: Float32Array,
  encoding: EncodingNumbers,
  signs: Bytes,
): Promise<number> {
  const { parameters, dimension, clip_norm, scale } = encoding;
  if (update.length !== parameters)
    throw new RangeError(`an update of ${update.length} numbers, and not of ${parameters}`);
  const { loops, room, reals, bytes } = machine;
  const [vector, bits] = [room(4 * dimension), room(Math.ceil(dimension / 8))];
  reals(vector, parameters).set(update);
  const norm = Math.sqrt(squaredNorm(machine, vector, parameters));
  if (!Number.isFinite(norm)) throw new RangeError("the update holds a number that is none");
  bytes(bits, Math.ceil(dimension / 8)).set(await stream(signs)(Math.ceil(dimension / 8)));
  loops.flip(vector, parameters, bits, scale * Math.min(1, norm > 0 ? clip_norm / norm : 1));
  rotate(machine, vector, dimension);
  loops.scaleWithin(vector, dimension, Math.fround(1 / Math.sqrt(dimension)), largestOf(encoding));
  return vector;
}

function squaredNorm({ loops, room }: Machine, vector: number, count: number): number {
  return loops.squaredNorm(vector, count, room(16 * 8));
}

/** A Hadamard matrix times the vector (dimension,) at an address, in its place: longer by the dimension's root. */
export function rotate({ loops, room, words }: Machine, vector: number, dimension: number): void {
  const { order, power } = factorsOf(dimension);
  loops.sylvester(vector, dimension, power);
  if (order === 1) return;
  const rows = paleyMatrix(order).map((row) => row.flatMap((each, place) => (each === 1 ? [64 * place] : [])));
  const places = rows.flat();
  let begin = 0;
  const begins = [0, ...rows.map((row) => (begin += row.length))];
  const [pluses, starts, near] = [room(4 * places.length), room(4 * begins.length), room(64 * (order + 1))];
  words(pluses, places.length).set(places);
  words(starts, begins.length).set(begins);
  loops.paley(vector, order, power, pluses, starts, near);
}

/** Orders of Paley's matrices over prime fields up to 256 that are no smaller one, doubled: 1, 12, 20, 28, ... */
const PALEY_ORDERS: readonly number[] = (() => {
  const found = [1];
  for (let order = 4; order <= 256; order += 4) {
    const doubled = found.some((each) => order % each === 0 && isPowerOfTwo(order / each));
    if (!doubled && (isFirst(order) || isSecond(order))) found.push(order);
  }
  return found;
})();

/** Construction I: q = order - 1, a prime that is 3 modulo 4. */
function isFirst(order: number): boolean {
  return (order - 1) % 4 === 3 && isPrime(order - 1);
}

/** Construction II: q = order / 2 - 1, a prime that is 1 modulo 4. */
function isSecond(order: number): boolean {
  return (order / 2 - 1) % 4 === 1 && isPrime(order / 2 - 1);
}

function isPrime(number: number): boolean {
  if (number < 3) return false; // 2 is of no order here
  for (let factor = 2; factor * factor <= number; factor++) if (number % factor === 0) return false;
  return true;
}

function isPowerOfTwo(number: number): boolean {
  return Number.isInteger(Math.log2(number));
}

/** h and 2^j of a dimension h 2^j, h the smallest order that there is. Throws: Refused where there is none. */
export function factorsOf(dimension: number): { readonly order: number; readonly power: number } {
  const order = PALEY_ORDERS.find((each) => dimension % each === 0 && isPowerOfTwo(dimension / each));
  if (order === undefined)
    throw new Refused(`there is no Hadamard matrix of ${dimension} rows here, by which an update would be rotated.`);
  return { order, power: dimension / order };
}

/**
 * Paley's Hadamard matrix of +1 and -1 (On orthogonal matrices, 1933).
 *
 * Q[a, b] = chi(a - b), the quadratic character modulo q. I: identity + [[0, 1], [-1, Q]]. II, with C = [[0, 1],
 * [1, Q]]: C (x) [[1, 1], [1, -1]] + identity (x) [[1, -1], [-1, -1]].
 */
export function paleyMatrix(order: number): readonly (readonly number[])[] {
  if (order === 1) return [[1]];
  const first = isFirst(order);
  const q = first ? order - 1 : order / 2 - 1;
  const squares = new Set(Array.from({ length: q }, (_, root) => (root * root) % q));
  const character = (of: number): number => (of === 0 ? 0 : squares.has(of) ? 1 : -1);
  const bordered = (row: number, column: number): number => {
    if (row === 0 || column === 0) return row === column ? 0 : row === 0 || !first ? 1 : -1;
    return character((row - column + q) % q);
  };
  const entry = (row: number, column: number): number => {
    if (first) return bordered(row, column) + Number(row === column);
    const [above, below] = [row >> 1, column >> 1];
    const [one, other] = [row & 1, column & 1];
    const corner = one & other ? -1 : 1;
    const diagonal = one | other ? -1 : 1;
    return above === below ? diagonal : bordered(above, below) * corner;
  };
  return Array.from({ length: order }, (_, row) => Array.from({ length: order }, (_, column) => entry(row, column)));
}
