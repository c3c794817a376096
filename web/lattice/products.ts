// Products of matrices of float32, four numbers at a time: what a step of training takes its time for.
// M rows, N columns, K what is summed over. `to` (M, N) has what is added to, row by row.

/** to += left by right (K, N); left's number of a row and a key is at row * perRow + key * perKey. */
export function multiply(to: usize, left: usize, right: usize, M: i32, N: i32, K: i32, perRow: i32, perKey: i32): void {
  const line: usize = (<usize>N) << 2;
  const step: usize = (<usize>perKey) << 2;
  let column: i32 = 0;
  // Columns outside, rows inside: what is read of `right` is the same for all rows, and stays near.
  for (; column + 16 <= N; column += 16) {
    const panel = right + ((<usize>column) << 2);
    for (let row: i32 = 0; row < M; row++) {
      const place = to + (<usize>row) * line + ((<usize>column) << 2);
      let a = v128.load(place);
      let b = v128.load(place, 16);
      let c = v128.load(place, 32);
      let d = v128.load(place, 48);
      let factor = left + (((<usize>row) * (<usize>perRow)) << 2);
      let from = panel;
      for (let key: i32 = 0; key < K; key++) {
        const each = v128.load32_splat(factor);
        a = f32x4.add(a, f32x4.mul(each, v128.load(from)));
        b = f32x4.add(b, f32x4.mul(each, v128.load(from, 16)));
        c = f32x4.add(c, f32x4.mul(each, v128.load(from, 32)));
        d = f32x4.add(d, f32x4.mul(each, v128.load(from, 48)));
        factor += step;
        from += line;
      }
      v128.store(place, a);
      v128.store(place, b, 16);
      v128.store(place, c, 32);
      v128.store(place, d, 48);
    }
  }
  for (; column < N; column++) {
    for (let row: i32 = 0; row < M; row++) {
      const place = to + (<usize>row) * line + ((<usize>column) << 2);
      let sum = load<f32>(place);
      let factor = left + (((<usize>row) * (<usize>perRow)) << 2);
      let from = right + ((<usize>column) << 2);
      for (let key: i32 = 0; key < K; key++) {
        sum += load<f32>(factor) * load<f32>(from);
        factor += step;
        from += line;
      }
      store<f32>(place, sum);
    }
  }
}

/** to += left (M, K) by right (N, K) turned. */
export function multiplyTurned(to: usize, left: usize, right: usize, M: i32, N: i32, K: i32): void {
  const line: usize = (<usize>K) << 2;
  for (let row: i32 = 0; row < M; row++) {
    const from = left + (<usize>row) * line;
    for (let column: i32 = 0; column < N; column++) {
      const other = right + (<usize>column) * line;
      let a = f32x4.splat(0);
      let b = f32x4.splat(0);
      let key: i32 = 0;
      for (; key + 8 <= K; key += 8) {
        const at = (<usize>key) << 2;
        a = f32x4.add(a, f32x4.mul(v128.load(from + at), v128.load(other + at)));
        b = f32x4.add(b, f32x4.mul(v128.load(from + at, 16), v128.load(other + at, 16)));
      }
      a = f32x4.add(a, b);
      let sum = f32x4.extract_lane(a, 0) + f32x4.extract_lane(a, 1) + f32x4.extract_lane(a, 2) + f32x4.extract_lane(a, 3);
      for (; key < K; key++) sum += load<f32>(from + ((<usize>key) << 2)) * load<f32>(other + ((<usize>key) << 2));
      const place = to + (((<usize>row) * (<usize>N) + <usize>column) << 2);
      store<f32>(place, load<f32>(place) + sum);
    }
  }
}
