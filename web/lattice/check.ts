// What a report says of itself: everything modulo 2^31 - 1, the field of the shares.

import { highHalf, reduced, times } from "./words";

const PRIME: u64 = 0x7fffffff;

/** fractions += floor(y w / 2^64) modulo 2^64, y = residue * part modulo the prime; w is whole 2^64 + rest. */
export function addFraction(
  residues: usize, degree: i32, part: u64, quotient: u64, prime: u64, whole: u64, rest: u64, fractions: usize,
): void {
  for (let place: usize = 0; place < <usize>degree << 3; place += 8) {
    const y = reduced(times(load<u64>(residues + place), part, quotient, prime), prime);
    store<u64>(fractions + place, load<u64>(fractions + place) + y * whole + highHalf(y, rest));
  }
}

/** Of each fraction of 2^64 the nearest multiple of 1 / p, upwards from the middle; 0 in place of p. (N,) u32 */
export function toField(fractions: usize, degree: i32, out: usize): void {
  for (let at = 0; at < degree; at++) {
    const fraction = load<u64>(fractions + (<usize>at << 3));
    const value = highHalf(fraction, PRIME) + ((fraction * PRIME) >> 63);
    store<u32>(out + (<usize>at << 2), <u32>reduced(value, PRIME));
  }
}

/** The 2 N - 1 numbers whose stretch from N - 1 - i on, times a key, is coefficient i of the product modulo X^N + 1. */
export function asRow(polynomial: usize, degree: i32, out: usize): void {
  for (let at = 0; at < degree; at++) {
    const value = load<u32>(polynomial + (<usize>(degree - 1 - at) << 2));
    store<u32>(out + (<usize>at << 2), value);
    if (at < degree - 1) store<u32>(out + (<usize>(degree + at) << 2), value == 0 ? 0 : <u32>PRIME - value);
  }
}

// @ts-ignore: decorator
@inline
function signOf(word: u64): i64 {
  return <i64>(word & 1) - <i64>((word >> 1) & 1);
}

/** Four numbers below twice the prime, below it. */
// @ts-ignore: decorator
@inline
function within(numbers: v128): v128 {
  return i32x4.min_u(numbers, i32x4.sub(numbers, i32x4.splat(<i32>PRIME)));
}

/**
 * The numbers by which a key is summed in a test (N,) u32: the picked coefficients of the public polynomials times their
 * signs, less the factors. One test a call: a browser makes a loop fast from the second call on.
 *
 * words: (picks,) u64; factors: (N,) bytes, of which `factor` makes signed numbers; rows: (polynomials, 2 N - 1) u32.
 */
export function keyRow(
  words: usize, picks: i32, factors: usize, factor: i32, rows: usize, polynomials: i32, degree: i32, out: usize,
): void {
  const length = <usize>(2 * degree - 1) << 2;
  for (let at = 0; at < degree; at += 4) {
    const drawn = i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load32_zero(factors + at)));
    const negative = v128.and(drawn, i32x4.splat(2 * factor - 1));
    v128.store(out + (<usize>at << 2), within(i32x4.sub(i32x4.splat(factor + <i32>PRIME), negative)));
  }
  for (let pick = 0; pick < picks; pick++) {
    const word = load<u64>(words + (<usize>pick << 3));
    const sign = signOf(word);
    if (sign == 0) continue;
    const index = <i32>highHalf(word, <u64>(polynomials * degree));
    const row = rows + <usize>(index / degree) * length + (<usize>(degree - 1 - (index % degree)) << 2);
    const flipped = i32x4.splat(sign < 0 ? <i32>PRIME : 0); // the negative of a number has its other 31 bits
    for (let place: usize = 0; place < <usize>degree << 2; place += 16) {
      const number = v128.xor(v128.load(row + place), flipped);
      v128.store(out + place, within(i32x4.add(v128.load(out + place), number)));
    }
  }
}

/** A share's sums with the numbers of `keyRow` that are in row r of a key, for each r: (tests, packed) u32. */
export function keyParts(
  rows: usize, tests: i32, degree: i32, share: usize, columns: i32, packed: i32, out: usize,
): void {
  for (let test = 0; test < tests; test++) {
    for (let place = 0; place < packed; place++) {
      const start = place * columns;
      const row = rows + (<usize>(test * degree + start) << 2);
      const size = min(columns, degree - start);
      const whole = <usize>(size & ~3) << 2;
      let sums = i64x2.splat(0);
      for (let column: usize = 0; column < whole; column += 16) {
        const left = v128.load(row + column);
        const right = v128.load(share + column);
        // Two products below 2^62.
        const products = i64x2.add(i64x2.extmul_low_i32x4_u(left, right), i64x2.extmul_high_i32x4_u(left, right));
        sums = i64x2.add(sums, i64x2.add(v128.and(products, i64x2.splat(PRIME)), i64x2.shr_u(products, 31)));
      }
      let sum = i64x2.extract_lane(sums, 0) + i64x2.extract_lane(sums, 1);
      for (let column = whole; column < <usize>size << 2; column += 4) {
        const product = <u64>load<u32>(row + column) * <u64>load<u32>(share + column);
        sum += (product & PRIME) + (product >> 31);
      }
      store<u32>(out + (<usize>(test * packed + place) << 2), <u32>(sum % PRIME));
    }
  }
}

/** Of each test the picked coefficients (polynomials, N) u32 times their signs: (tests,) u32. */
export function picked(words: usize, tests: i32, picks: i32, coefficients: usize, count: i32, out: usize): void {
  for (let test = 0; test < tests; test++) {
    let sum: i64 = 0;
    for (let pick = 0; pick < picks; pick++) {
      const word = load<u64>(words + (<usize>(test * picks + pick) << 3));
      sum += signOf(word) * <i64>load<u32>(coefficients + (<usize>highHalf(word, <u64>count) << 2));
    }
    store<u32>(out + (<usize>test << 2), <u32>((sum + <i64>(PRIME << 5)) % <i64>PRIME));
  }
}

/** weights (rows, inner) u32 times values (inner, columns) u32, modulo p: (rows, columns) u32. */
export function combine(weights: usize, rows: i32, inner: i32, values: usize, columns: i32, out: usize): void {
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      let sum: u64 = 0;
      for (let at = 0; at < inner; at++) {
        const weight = <u64>load<u32>(weights + (<usize>(row * inner + at) << 2));
        const product = weight * <u64>load<u32>(values + (<usize>(at * columns + column) << 2));
        sum += (product & PRIME) + (product >> 31);
      }
      store<u32>(out + (<usize>(row * columns + column) << 2), <u32>(sum % PRIME));
    }
  }
}
