/** The loops of `web/lattice` in a memory of their own, which is forgotten with what called them. */

/** What the module exports; addresses are bytes of its memory. `web/lattice` says what each does. */
export interface Loops {
  powers(
    psi: bigint,
    psiQuotient: bigint,
    word: bigint,
    wordQuotient: bigint,
    negativeInverse: bigint,
    prime: bigint,
    bits: number,
    roots: number,
    quotients: number,
  ): void;
  transform(at: number, degree: number, roots: number, quotients: number, prime: bigint): void;
  invert(
    at: number,
    degree: number,
    roots: number,
    quotients: number,
    last: bigint,
    lastQuotient: bigint,
    prime: bigint,
  ): void;
  scaleSmall(small: number, degree: number, factor: bigint, quotient: bigint, prime: bigint, out: number): void;
  scale(at: number, degree: number, factor: bigint, quotient: bigint, prime: bigint): void;
  addProduct(
    total: number,
    one: number,
    prepared: number,
    degree: number,
    prime: bigint,
    negativeInverse: bigint,
  ): void;
  addWide(wide: number, degree: number, powers: number, quotients: number, prime: bigint, total: number): void;
  keep(words: number, count: number, mask: bigint, prime: bigint, out: number, filled: number, degree: number): number;
  sample(words: number, count: number, high: number, low: number, thresholds: number, out: number): void;
  fill(
    wide: number,
    degree: number,
    numbers: number,
    count: number,
    slots: number,
    width: number,
    checks: number,
  ): void;
  pack(residues: number, degree: number, bits: number, out: number): void;
  addFraction(
    residues: number,
    degree: number,
    part: bigint,
    quotient: bigint,
    prime: bigint,
    whole: bigint,
    rest: bigint,
    fractions: number,
  ): void;
  toField(fractions: number, degree: number, out: number): void;
  asRow(polynomial: number, degree: number, out: number): void;
  keyRow(
    words: number,
    picks: number,
    factors: number,
    factor: number,
    rows: number,
    polynomials: number,
    degree: number,
    out: number,
  ): void;
  keyParts(
    rows: number,
    tests: number,
    degree: number,
    share: number,
    columns: number,
    packed: number,
    out: number,
  ): void;
  picked(words: number, tests: number, picks: number, coefficients: number, count: number, out: number): void;
  combine(weights: number, rows: number, inner: number, values: number, columns: number, out: number): void;
  flip(vector: number, count: number, bits: number, factor: number): void;
  sylvester(vector: number, count: number, size: number): void;
  paley(table: number, order: number, columns: number, pluses: number, begins: number, near: number): void;
  scaleWithin(vector: number, count: number, factor: number, most: number): void;
  roundAtRandom(vector: number, count: number, draws: number, shift: number, out: number): bigint;
  roundToZero(vector: number, count: number, factor: number, shift: number, out: number): void;
  squaredNorm(vector: number, count: number, lanes: number): number;
  multiply(to: number, left: number, right: number, M: number, N: number, K: number, perRow: number, perKey: number): void;
  multiplyTurned(to: number, left: number, right: number, M: number, N: number, K: number): void;
}

/** Loops, and room in their memory. A view of it is good until the next `room`. */
export interface Machine {
  readonly loops: Loops;
  /** The address of so many bytes, all zero, that nobody else has. */
  room(bytes: number): number;
  bytes(at: number, count: number): Uint8Array<ArrayBuffer>;
  /** Whole numbers of 4 bytes. */
  words(at: number, count: number): Uint32Array<ArrayBuffer>;
  /** Whole numbers of 8 bytes. */
  longs(at: number, count: number): BigUint64Array<ArrayBuffer>;
  reals(at: number, count: number): Float32Array<ArrayBuffer>;
}

const PAGE = 65536;
const ALIGNED = 64; // bytes: a line of the cache
const START = 1024; // nothing lies at an address that a forgotten one would be

/** A machine of the module that `web/lattice/lattice.wasm` compiles to. */
export async function machineOf(compiled: WebAssembly.Module): Promise<Machine> {
  const { exports } = await WebAssembly.instantiate(compiled);
  const loops = exports as unknown as Loops;
  const memory = exports["memory"] as WebAssembly.Memory;
  let top = START;
  const room = (bytes: number): number => {
    const at = top;
    top += Math.ceil(bytes / ALIGNED) * ALIGNED;
    const missing = Math.ceil((top - memory.buffer.byteLength) / PAGE);
    if (missing > 0) memory.grow(missing);
    return at;
  };
  const buffer = (): ArrayBuffer => memory.buffer as ArrayBuffer;
  return {
    loops,
    room,
    bytes: (at, count) => new Uint8Array(buffer(), at, count),
    words: (at, count) => new Uint32Array(buffer(), at, count),
    longs: (at, count) => new BigUint64Array(buffer(), at, count),
    reals: (at, count) => new Float32Array(buffer(), at, count),
  };
}
