// Whole numbers of a discrete Gaussian, from a table of its distribution to 128 bits.

/**
 * Of each word of 16 bytes (little-endian): how many thresholds are at or below it, less the tail. (count,) i64
 *
 * Every threshold is compared, and no branch and no address depends on a number.
 */
export function sample(
  words: usize,
  count: i32,
  high: usize,
  low: usize,
  thresholds: i32,
  tail: i64,
  out: usize,
): void {
  for (let at = 0; at < count; at++) {
    const lower = load<u64>(words + ((<usize>at) << 4));
    const upper = load<u64>(words + ((<usize>at) << 4) + 8);
    let passed: i32 = 0;
    for (let place: usize = 0; place < (<usize>thresholds) << 3; place += 8) {
      const above = load<u64>(high + place);
      passed += i32(upper > above) | (i32(upper == above) & i32(lower >= load<u64>(low + place)));
    }
    store<i64>(out + ((<usize>at) << 3), <i64>passed - tail);
  }
}
