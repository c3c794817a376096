/** Polynomials modulo X^N + 1 and the primes of a published set, in a machine's memory. */

import { bitLength, modulusOf, TAIL, thresholds, type LatticeParameters } from "./parameters.ts";
import type { Machine } from "./machine.ts";
import { derived, stream } from "./secrets.ts";
import { littleEndian } from "./wire.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const LIMBS = 4; // words of a coefficient below 2^256
const WORD = 1n << 64n;
const FIRST_BIT = 1n << 63n; // of a word

/** A number that many are multiplied with modulo one prime. */
interface Factor {
  readonly value: bigint;
  readonly quotient: bigint; // floor(2^64 value / prime)
}

/** What the loops need of one prime; addresses are of tables in the machine. */
interface Prime {
  readonly prime: bigint;
  readonly bits: number;
  readonly negativeInverse: bigint; // -1 / prime modulo 2^64
  readonly roots: number;
  readonly quotients: number;
  readonly inverseRoots: number;
  readonly inverseQuotients: number;
  readonly last: Factor; // 1 / N
  readonly word: Factor; // 2^64
  readonly plain: Factor; // t
  readonly part: Factor; // (q / prime)^-1
  readonly limbs: number; // 2^(64 k), and their quotients behind them
}

/** The operations that a report takes. A polynomial is its residues (primes, N), at an address. */
export interface Ring {
  readonly degree: number;
  /** Room for a polynomial. */
  polynomial(): number;
  /** Fills with the transform of small numbers (N,) times t; `plain` (N, 4) is added, where it is an address. */
  encrypted(small: number, plain: number, out: number): void;
  /** Fills with the transform of small numbers (N,), prepared for `addProduct`. */
  prepared(small: number, out: number): void;
  /** total += transform * prepared. */
  addProduct(total: number, transformed: number, prepared: number): void;
  /** The transform of the seed's public polynomial j. */
  publicPolynomial(seed: Bytes, j: number, out: number): Promise<void>;
  /** The bytes of a transform, at a place of `out`. */
  pack(transformed: number, out: Uint8Array, place: number): void;
  /** The coefficients times p / q, rounded, (N,) elements; the polynomial is taken back in its place. p = 2^31 - 1 */
  switched(transformed: number, out: number): void;
  /** Discrete Gaussians (N,) i64 from 16 random bytes each. */
  sample(drawn: Uint8Array, out: number): void;
  /** The transform alone, in its place. */
  transform(polynomial: number): void;
}

function factor(value: bigint, prime: bigint): Factor {
  return { value, quotient: (value << 64n) / prime };
}

/** base^exponent modulo the prime. */
function power(base: bigint, exponent: bigint, prime: bigint): bigint {
  let [result, square] = [1n, base % prime];
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % prime;
    square = (square * square) % prime;
  }
  return result;
}

/** psi: c^((prime - 1) / 2N) for the smallest c >= 2 that makes psi^N = -1. */
export function primitiveRoot(prime: bigint, degree: number): bigint {
  for (let base = 2n; ; base++) {
    const psi = power(base, (prime - 1n) / BigInt(2 * degree), prime);
    if (power(psi, BigInt(degree), prime) === prime - 1n) return psi;
  }
}

function primeOf(machine: Machine, prime: bigint, parameters: LatticeParameters): Prime {
  const { degree, plainBits } = parameters;
  const { loops, room, longs } = machine;
  const inverse = (value: bigint): bigint => power(value % prime, prime - 2n, prime); // Fermat
  let negativeInverse = prime; // Newton: right bits double, from three on
  for (let step = 0; step < 6; step++)
    negativeInverse = BigInt.asUintN(64, negativeInverse * (2n - prime * negativeInverse));
  negativeInverse = BigInt.asUintN(64, -negativeInverse);
  const word = factor(WORD % prime, prime);
  const powersOf = (psi: bigint): { roots: number; quotients: number } => {
    const [roots, quotients] = [room(8 * degree), room(8 * degree)];
    const { quotient } = factor(psi, prime);
    loops.powers(psi, quotient, word.value, word.quotient, negativeInverse, prime, Math.log2(degree), roots, quotients);
    return { roots, quotients };
  };
  const psi = primitiveRoot(prime, degree);
  const back = powersOf(inverse(psi));
  const limbs = room(8 * 2 * LIMBS);
  const ofLimbs = Array.from({ length: LIMBS }, (_, limb) => factor(power(2n, BigInt(64 * limb), prime), prime));
  longs(limbs, 2 * LIMBS).set([...ofLimbs.map((each) => each.value), ...ofLimbs.map((each) => each.quotient)]);
  return {
    prime,
    bits: bitLength(prime),
    negativeInverse,
    ...powersOf(psi),
    inverseRoots: back.roots,
    inverseQuotients: back.quotients,
    last: factor(inverse(BigInt(degree)), prime),
    word,
    plain: factor(power(2n, BigInt(plainBits), prime), prime),
    part: factor(inverse(modulusOf(parameters) / prime), prime),
    limbs,
  };
}

/** The ring of a published set. */
export function ringOf(machine: Machine, parameters: LatticeParameters): Ring {
  const { loops, room, bytes, longs } = machine;
  const { degree } = parameters;
  const primes = parameters.primes.map((prime) => primeOf(machine, prime, parameters));
  const row = 8 * degree;
  const [words, fractions, packed] = [room(2 * row), room(row), room(row)];
  const table = thresholds().slice(0, TAIL); // those below 2^127
  const [high, low] = [room(8 * table.length), room(8 * table.length)];
  longs(high, table.length).set(table.map((each) => each >> 64n));
  longs(low, table.length).set(table.map((each) => BigInt.asUintN(64, each) ^ FIRST_BIT));

  const transform = (polynomial: number): void =>
    primes.forEach((each, at) =>
      loops.transform(polynomial + at * row, degree, each.roots, each.quotients, each.prime),
    );

  const scaledSmall = (small: number, by: (prime: Prime) => Factor, out: number): void =>
    primes.forEach((each, at) => {
      const { value, quotient } = by(each);
      loops.scaleSmall(small, degree, value, quotient, each.prime, out + at * row);
    });

  return {
    degree,
    polynomial: () => room(primes.length * row),
    transform,
    encrypted: (small, plain, out) => {
      scaledSmall(small, (each) => each.plain, out);
      primes.forEach(({ limbs, prime }, at) =>
        loops.addWide(plain, degree, limbs, limbs + 8 * LIMBS, prime, out + at * row),
      );
      transform(out);
    },
    prepared: (small, out) => {
      scaledSmall(small, (each) => factor(1n, each.prime), out);
      transform(out);
      primes.forEach(({ word, prime }, at) => loops.scale(out + at * row, degree, word.value, word.quotient, prime));
    },
    addProduct: (total, transformed, prepared) =>
      primes.forEach(({ prime, negativeInverse }, at) =>
        loops.addProduct(total + at * row, transformed + at * row, prepared + at * row, degree, prime, negativeInverse),
      ),
    publicPolynomial: async (seed, j, out) => {
      for (const [at, { prime, bits }] of primes.entries()) {
        const draw = stream(await derived(seed, "public polynomial", littleEndian(j, 4), littleEndian(at, 4)));
        for (let filled = 0; filled < degree;) {
          const count = degree - filled;
          const drawn = await draw(8 * count);
          bytes(words, drawn.length).set(drawn);
          filled = loops.keep(words, count, (1n << BigInt(bits)) - 1n, prime, out + at * row, filled, degree);
        }
      }
    },
    pack: (transformed, out, place) => {
      for (const [at, { bits }] of primes.entries()) {
        const size = (degree * bits) / 8;
        bytes(packed, size).fill(0);
        loops.pack(transformed + at * row, degree, bits, packed);
        out.set(bytes(packed, size), place);
        place += size;
      }
    },
    switched: (transformed, out) => {
      bytes(fractions, row).fill(0);
      for (const [at, { prime, inverseRoots, inverseQuotients, last, part }] of primes.entries()) {
        const here = transformed + at * row;
        loops.invert(here, degree, inverseRoots, inverseQuotients, last.value, last.quotient, prime);
        const share = (1n << 128n) / prime;
        loops.addFraction(
          here,
          degree,
          part.value,
          part.quotient,
          prime,
          share >> 64n,
          BigInt.asUintN(64, share),
          fractions,
        );
      }
      loops.toField(fractions, degree, out);
    },
    sample: (drawn, out) => {
      bytes(words, drawn.length).set(drawn);
      loops.sample(words, degree, high, low, table.length, out);
      bytes(words, drawn.length).fill(0);
    },
  };
}
