// Whole numbers of a discrete Gaussian, from the lower half of a table of its distribution to 128 bits.

/**
 * A number (count,) i64 of each word of 16 bytes (little-endian): how many thresholds are at or below it, from the
 * middle of all on. The table has those below 2^127, and the others are 2^128 - 1 less these. So a word from 2^127 on is
 * turned over; then the number is how many thresholds are above the word, and elsewhere the negative of that.
 *
 * high: the upper halves of the thresholds; low: the lower ones, their first bit turned over: a signed comparison is all
 * that there is of two numbers at a time. Every threshold is compared, and no branch and no address depends on a number.
 * count: even.
 */
export function sample(words: usize, count: i32, high: usize, low: usize, thresholds: i32, out: usize): void {
  const firstBit = i64x2.splat(i64.MIN_VALUE);
  for (let at: usize = 0; at < <usize>count << 4; at += 32) {
    const one = v128.load(words + at);
    const other = v128.load(words + at, 16);
    const turned = i64x2.shr_s(v128.shuffle<i64>(one, other, 1, 3), 63);
    const low0 = v128.xor(v128.shuffle<i64>(one, other, 0, 2), turned);
    const high0 = v128.xor(v128.shuffle<i64>(one, other, 1, 3), turned);
    // Less 1 where it was turned over: a threshold that is the word itself is above it there.
    const borrowed = v128.and(i64x2.eq(low0, i64x2.splat(0)), turned);
    const lower = v128.xor(i64x2.add(low0, turned), firstBit);
    const upper = i64x2.add(high0, borrowed);
    let above = i64x2.splat(0);
    for (let place: usize = 0; place < <usize>thresholds << 3; place += 8) {
      const borrow = i64x2.gt_s(v128.load64_splat(low + place), lower);
      const rest = i64x2.add(i64x2.sub(upper, v128.load64_splat(high + place)), borrow);
      above = i64x2.add(above, i64x2.shr_u(rest, 63));
    }
    const negative = v128.not(turned);
    v128.store(out + (at >> 1), i64x2.sub(v128.xor(above, negative), negative));
  }
}
