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

/** number * factor modulo the prime, below twice the prime; quotient is floor(factor 2^64 / prime) (Shoup). The number may be any word. */
// @ts-ignore: decorator
@inline
export function times(number: u64, factor: u64, quotient: u64, prime: u64): u64 {
  return factor * number - highHalf(quotient, number) * prime;
}

/** A number below twice the prime, reduced. No branch: which of the two it was is not seen in the time. */
// @ts-ignore: decorator
@inline
export function reduced(number: u64, prime: u64): u64 {
  return select<u64>(number - prime, number, number >= prime);
}
