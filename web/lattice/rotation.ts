// A vector of float32 times signs, times a Hadamard matrix; and rounded at random. In one order of additions, so that
// every processor gives the same bits.

const LANES = 16; // columns that Paley's matrix is multiplied with at a time: a line of the cache

/** vector *= factor, and -factor where the bit is 1 (eight a byte, the lowest first): rounded once. */
export function flip(vector: usize, count: i32, bits: usize, factor: f64): void {
  for (let at = 0; at < count; at++) {
    const place = vector + (<usize>at << 2);
    const bit = (<i32>load<u8>(bits + (at >> 3)) >> (at & 7)) & 1;
    store<f32>(place, <f32>(<f64>load<f32>(place) * (bit ? -factor : factor)));
  }
}

/** Sylvester's matrix of order `size`, a power of two, times each stretch of so many. */
export function sylvester(vector: usize, count: i32, size: i32): void {
  const bytes = <usize>size << 2;
  for (let start = vector; start < vector + (<usize>count << 2); start += bytes) {
    for (let step: usize = 4; step < bytes; step <<= 1) {
      for (let block = start; block < start + bytes; block += 2 * step) {
        if (step < 16) butterflies(block, step);
        else wideButterflies(block, step);
      }
    }
  }
}

// @ts-ignore: decorator
@inline
function butterflies(block: usize, step: usize): void {
  for (let low = block; low < block + step; low += 4) {
    const one = load<f32>(low);
    const other = load<f32>(low + step);
    store<f32>(low, one + other);
    store<f32>(low + step, one - other);
  }
}

// @ts-ignore: decorator
@inline
function wideButterflies(block: usize, step: usize): void {
  for (let low = block; low < block + step; low += 16) {
    const one = v128.load(low);
    const other = v128.load(low + step);
    v128.store(low, f32x4.add(one, other));
    v128.store(low + step, f32x4.sub(one, other));
  }
}

/**
 * Paley's matrix times (order, columns) in place: a row of it is twice the sum where it is +1, less the sum of all.
 *
 * pluses: where each row is +1, as offsets of 64 bytes, u32, row after row; begins: (order + 1,) u32, where each row
 * begins among them; near: room for (order, LANES) float32.
 */
export function paley(table: usize, order: i32, columns: i32, pluses: usize, begins: usize, near: usize): void {
  const row = <usize>columns << 2;
  const bytes = min<usize>(row, LANES << 2);
  for (let column: usize = 0; column < row; column += bytes) {
    for (let at = 0; at < order; at++) memory.copy(near + (<usize>at << 6), table + <usize>at * row + column, bytes);
    let all0 = f32x4.splat(0), all1 = f32x4.splat(0), all2 = f32x4.splat(0), all3 = f32x4.splat(0);
    for (let at = near; at < near + (<usize>order << 6); at += 64) {
      all0 = f32x4.add(all0, v128.load(at));
      all1 = f32x4.add(all1, v128.load(at, 16));
      all2 = f32x4.add(all2, v128.load(at, 32));
      all3 = f32x4.add(all3, v128.load(at, 48));
    }
    const found = near + (<usize>order << 6);
    for (let at = 0; at < order; at++) {
      let sum0 = f32x4.splat(0), sum1 = f32x4.splat(0), sum2 = f32x4.splat(0), sum3 = f32x4.splat(0);
      const end = pluses + (<usize>load<u32>(begins + (<usize>at << 2), 4) << 2);
      for (let plus = pluses + (<usize>load<u32>(begins + (<usize>at << 2)) << 2); plus < end; plus += 4) {
        const from = near + <usize>load<u32>(plus);
        sum0 = f32x4.add(sum0, v128.load(from));
        sum1 = f32x4.add(sum1, v128.load(from, 16));
        sum2 = f32x4.add(sum2, v128.load(from, 32));
        sum3 = f32x4.add(sum3, v128.load(from, 48));
      }
      v128.store(found, f32x4.sub(f32x4.add(sum0, sum0), all0));
      v128.store(found, f32x4.sub(f32x4.add(sum1, sum1), all1), 16);
      v128.store(found, f32x4.sub(f32x4.add(sum2, sum2), all2), 32);
      v128.store(found, f32x4.sub(f32x4.add(sum3, sum3), all3), 48);
      memory.copy(table + <usize>at * row + column, found, bytes);
    }
  }
}

/** vector *= factor in float32, then each within [-most, most]. */
export function scaleWithin(vector: usize, count: i32, factor: f32, most: f32): void {
  for (let place = vector; place < vector + (<usize>count << 2); place += 4) {
    store<f32>(place, min<f32>(max<f32>(load<f32>(place) * factor, -most), most));
  }
}

/** Each number rounded up with the probability of its fraction, plus the shift; the squared norm without it. */
export function roundAtRandom(vector: usize, count: i32, draws: usize, shift: i32, out: usize): i64 {
  let squared: i64 = 0;
  for (let place: usize = 0; place < <usize>count << 2; place += 4) {
    const value = <f64>load<f32>(vector + place);
    const below = Math.floor(value);
    const up = i32(<f64>load<u32>(draws + place) < (value - below) * 4294967296.0);
    const rounded = <i32>below + up;
    squared += <i64>rounded * <i64>rounded;
    store<i32>(out + place, rounded + shift);
  }
  return squared;
}

/** factor * number rounded toward zero, plus the shift. */
export function roundToZero(vector: usize, count: i32, factor: f64, shift: i32, out: usize): void {
  for (let place: usize = 0; place < <usize>count << 2; place += 4) {
    store<i32>(out + place, <i32>(<f64>load<f32>(vector + place) * factor) + shift);
  }
}

/** The sum of squares, in 16 partial sums side by side; not finite where a number is not. lanes: (16,) f64 of zeros. */
export function squaredNorm(vector: usize, count: i32, lanes: usize): f64 {
  const whole = count - (count % LANES);
  for (let at = 0; at < count; at++) {
    const value = <f64>load<f32>(vector + (<usize>at << 2));
    const lane = lanes + (at < whole ? <usize>(at % LANES) << 3 : 0);
    store<f64>(lane, load<f64>(lane) + value * value);
  }
  let sum: f64 = 0;
  for (let lane: usize = 0; lane < <usize>LANES << 3; lane += 8) sum += load<f64>(lanes + lane);
  return sum;
}
