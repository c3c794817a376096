// Products of 64-bit words, of which WebAssembly has the low half alone.

/** The high 64 bits of a product of 64-bit words. */
// @ts-ignore: decorator
@inline
export function highHalf(one: u64, other: u64): u64 {
  const low = one & 0xffffffff;
  const high = one >> 32;
  const otherLow = other & 0xffffffff;
  const otherHigh = other >> 32;
  const middle = high * otherLow + ((low * otherLow) >> 32);
  const otherMiddle = low * otherHigh + (middle & 0xffffffff);
  return high * otherHigh + (middle >> 32) + (otherMiddle >> 32);
}

/** Any word times a factor, below twice the prime; the quotient is floor(factor 2^64 / prime) (Shoup). */
// @ts-ignore: decorator
@inline
export function times(number: u64, factor: u64, quotient: u64, prime: u64): u64 {
  return factor * number - highHalf(quotient, number) * prime;
}

/** A number below twice the prime, reduced: by arithmetic, so that no branch depends on the number. */
// @ts-ignore: decorator
@inline
export function reduced(number: u64, prime: u64): u64 {
  return number - (prime & (0 - <u64>(number >= prime)));
}
