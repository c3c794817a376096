// Polynomials modulo X^N + 1 and a prime below 2^61. A polynomial is N words of 8 bytes, at an address of the caller's.
// Butterflies after Harvey (arXiv:1205.2926): numbers stay below four times the prime until the end.

import { highHalf, reduced, times } from "./words";

/** The log2(degree) bits of a number, turned round. */
function turned(number: i32, bits: i32): i32 {
  let found = 0;
  for (let bit = 0; bit < bits; bit++) found |= ((number >> bit) & 1) << (bits - 1 - bit);
  return found;
}

/**
 * psi^turned(i) modulo the prime, and floor(2^64 psi^turned(i) / prime) beside it. (N,) each
 *
 * word: 2^64 modulo the prime; negativeInverse: -1 / prime modulo 2^64. The quotient is exact: what is left of 2^64 w
 * is a product modulo the prime, and the rest is divided by the prime modulo 2^64.
 */
export function powers(
  psi: u64,
  psiQuotient: u64,
  word: u64,
  wordQuotient: u64,
  negativeInverse: u64,
  prime: u64,
  bits: i32,
  roots: usize,
  quotients: usize,
): void {
  let power: u64 = 1;
  for (let number = 0; number < 1 << bits; number++) {
    const place = (<usize>turned(number, bits)) << 3;
    store<u64>(roots + place, power);
    store<u64>(quotients + place, reduced(times(power, word, wordQuotient, prime), prime) * negativeInverse);
    power = reduced(times(power, psi, psiQuotient, prime), prime);
  }
}

/** In place: the values at psi^(2 turned(i) + 1). Numbers below the prime give numbers below the prime. */
export function transform(at: usize, degree: i32, roots: usize, quotients: usize, prime: u64): void {
  const twice = prime << 1;
  let blocks = 1;
  for (let half = degree >> 1; half > 0; half >>= 1) {
    for (let block = 0; block < blocks; block++) {
      const root = load<u64>(roots + ((<usize>(blocks + block)) << 3));
      const quotient = load<u64>(quotients + ((<usize>(blocks + block)) << 3));
      const start = at + ((<usize>(2 * block * half)) << 3);
      const distance = (<usize>half) << 3;
      for (let low = start; low < start + distance; low += 8) {
        const one = reduced(load<u64>(low), twice);
        const other = times(load<u64>(low + distance), root, quotient, prime);
        store<u64>(low, one + other);
        store<u64>(low + distance, one - other + twice);
      }
    }
    blocks <<= 1;
  }
  for (let place = at; place < at + ((<usize>degree) << 3); place += 8) {
    store<u64>(place, reduced(reduced(load<u64>(place), twice), prime));
  }
}

/** In place: what `transform` was made of. roots: psi^-turned(i); last: 1 / N. */
export function invert(
  at: usize,
  degree: i32,
  roots: usize,
  quotients: usize,
  last: u64,
  lastQuotient: u64,
  prime: u64,
): void {
  const twice = prime << 1;
  let blocks = degree >> 1;
  for (let half = 1; blocks > 0; half <<= 1) {
    for (let block = 0; block < blocks; block++) {
      const root = load<u64>(roots + ((<usize>(blocks + block)) << 3));
      const quotient = load<u64>(quotients + ((<usize>(blocks + block)) << 3));
      const start = at + ((<usize>(2 * block * half)) << 3);
      const distance = (<usize>half) << 3;
      for (let low = start; low < start + distance; low += 8) {
        const one = load<u64>(low);
        const other = load<u64>(low + distance);
        store<u64>(low, reduced(one + other, twice));
        store<u64>(low + distance, times(one - other + twice, root, quotient, prime));
      }
    }
    blocks >>= 1;
  }
  for (let place = at; place < at + ((<usize>degree) << 3); place += 8) {
    store<u64>(place, reduced(times(load<u64>(place), last, lastQuotient, prime), prime));
  }
}

/** out = number * factor modulo the prime, of small signed numbers (N,) i64. */
export function scaleSmall(small: usize, degree: i32, factor: u64, quotient: u64, prime: u64, out: usize): void {
  for (let place: usize = 0; place < (<usize>degree) << 3; place += 8) {
    const number = <u64>(load<i64>(small + place) + <i64>prime);
    store<u64>(out + place, reduced(times(number, factor, quotient, prime), prime));
  }
}

/** In place: times a factor. */
export function scale(at: usize, degree: i32, factor: u64, quotient: u64, prime: u64): void {
  for (let place = at; place < at + ((<usize>degree) << 3); place += 8) {
    store<u64>(place, reduced(times(load<u64>(place), factor, quotient, prime), prime));
  }
}

/** total += one * prepared / 2^64 (Montgomery 1985), place by place. */
export function addProduct(
  total: usize,
  one: usize,
  prepared: usize,
  degree: i32,
  prime: u64,
  negativeInverse: u64,
): void {
  for (let place: usize = 0; place < (<usize>degree) << 3; place += 8) {
    const left = load<u64>(one + place);
    const right = load<u64>(prepared + place);
    const low = left * right;
    // The low halves of the product and of the prime's multiple cancel and carry one, unless they are zero.
    const carried = highHalf(left, right) + highHalf(low * negativeInverse, prime) + <u64>(low != 0);
    store<u64>(total + place, reduced(load<u64>(total + place) + reduced(carried, prime), prime));
  }
}

/** total += the residues of whole numbers of four words each (N, 4); power k is 2^(64 k) modulo the prime. */
export function addWide(wide: usize, degree: i32, powers: usize, quotients: usize, prime: u64, total: usize): void {
  const twice = prime << 1;
  for (let at = 0; at < degree; at++) {
    let value: u64 = 0;
    for (let limb = 0; limb < 4; limb++) {
      const here = (<usize>limb) << 3;
      const number = load<u64>(wide + ((<usize>at) << 5) + here);
      value = reduced(value + times(number, load<u64>(powers + here), load<u64>(quotients + here), prime), twice);
    }
    const place = total + ((<usize>at) << 3);
    store<u64>(place, reduced(load<u64>(place) + reduced(value, prime), prime));
  }
}

/** Puts the low bits of public words, where they are below the prime, behind the first `filled`: how many are there. */
export function keep(words: usize, count: i32, mask: u64, prime: u64, out: usize, filled: i32, degree: i32): i32 {
  for (let at = 0; at < count && filled < degree; at++) {
    const value = load<u64>(words + ((<usize>at) << 3)) & mask;
    if (value < prime) {
      store<u64>(out + ((<usize>filled) << 3), value);
      filled++;
    }
  }
  return filled;
}
