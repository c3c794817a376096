/** The published sets of the lattice, and the bounds that follow from them. */

/** N, the primes of q, t = 2^plainBits; S and F of the check of a report. */
export interface LatticeParameters {
  readonly degree: number;
  readonly primes: readonly bigint[];
  readonly plainBits: number;
  readonly shift: number;
  readonly factor: number;
}

export const PUBLISHED: Readonly<Record<string, LatticeParameters>> = {
  "willow-4096": { degree: 4096, primes: [274877816833n, 274877718529n], plainBits: 56, shift: 2 ** 20, factor: 64 },
  "willow-8192": {
    degree: 8192,
    primes: [1125899906629633n, 1125899905744897n, 1125899905351681n, 1125899903827969n],
    plainBits: 168,
    shift: 2 ** 14,
    factor: 1,
  },
  "willow-16384": {
    degree: 16384,
    primes: [2305843009211596801n, 2305843009211400193n, 2305843009210515457n, 2305843009210023937n],
    plainBits: 224,
    shift: 2 ** 20,
    factor: 32,
  },
};

export const WIDTH = 6.5; // sigma of keys and errors
export const TAIL = 88; // beyond which no number is drawn

/** Bits of a whole number above 0. */
export function bitLength(value: bigint): number {
  return value.toString(2).length;
}

/** q. */
export function modulusOf(parameters: LatticeParameters): bigint {
  return parameters.primes.reduce((product, prime) => product * prime, 1n);
}

/** The bytes of a polynomial's ciphertext. */
export function polynomialBytes(parameters: LatticeParameters): number {
  return parameters.primes.reduce((sum, prime) => sum + (parameters.degree * bitLength(prime)) / 8, 0);
}

/** What the errors of so many reports stay within in so many coefficients, but with probability 2^-64. */
export function errorBound(reports: number, coefficients: number): number {
  return Math.ceil(WIDTH * Math.sqrt(2 * reports * Math.LN2 * (65 + Math.log2(coefficients))));
}

/**
 * floor(2^128 P(X <= x)) for x = -TAIL, ..., TAIL - 1, of the discrete Gaussian of width WIDTH cut at TAIL.
 *
 * exp(-x^2 / (2 WIDTH^2)) is r^(x^2) with r = exp(-2/169), by its series in fixed point of 512 bits.
 */
export function thresholds(): readonly bigint[] {
  const bits = 512n;
  const one = 1n << bits;
  let rate = 0n;
  for (let term = one, k = 1n; term !== 0n; term = (-term * 2n) / (169n * k), k++) rate += term;
  const masses = [one];
  let odd = rate; // rate^(2 x + 1)
  for (let x = 0; x < TAIL; x++) {
    masses.push((masses[x]! * odd) >> bits);
    odd = (((odd * rate) >> bits) * rate) >> bits;
  }
  const all = Array.from({ length: 2 * TAIL + 1 }, (_, place) => masses[Math.abs(place - TAIL)]!);
  const total = all.reduce((sum, mass) => sum + mass);
  let below = 0n;
  return all.slice(0, -1).map((mass) => ((below += mass) << 128n) / total);
}
