/** Products of matrices of float32: plainly, for a word at a time, and by the loops of `web/lattice`, for training. */

import { machineOf } from "../core/seal/machine.ts";

/** left (M, K) by right (K, N), either lying turned, which is added to `to` (M, N). Rows one after another. */
export interface Product {
  readonly to: Float32Array;
  readonly left: Float32Array;
  readonly right: Float32Array;
  readonly M: number;
  readonly N: number;
  readonly K: number;
  readonly leftTurned: boolean;
  readonly rightTurned: boolean; // not both
}

export interface Products {
  add(product: Product): void;
}

/** Four keys at a time: each sum is loaded and stored a quarter as often. */
export const PLAIN: Products = {
  add({ to, left, right, M, N, K, leftTurned, rightTurned }) {
    if (rightTurned) {
      for (let row = 0; row < M; row++) {
        for (let column = 0; column < N; column++) {
          let sum = to[row * N + column] as number;
          for (let key = 0; key < K; key++) sum += (left[row * K + key] as number) * (right[column * K + key] as number);
          to[row * N + column] = sum;
        }
      }
      return;
    }
    const [perRow, perKey] = leftTurned ? [1, M] : [K, 1];
    for (let row = 0; row < M; row++) {
      const begin = row * N;
      let key = 0;
      for (; key + 4 <= K; key += 4) addFour(to, begin, N, left, row * perRow + key * perKey, perKey, right, key * N);
      for (; key < K; key++) {
        const factor = left[row * perRow + key * perKey] as number;
        for (let column = 0, one = key * N; column < N; column++, one++) to[begin + column] = (to[begin + column] as number) + factor * (right[one] as number);
      }
    }
  },
};

/** Adds to a row of `to` four rows of `right`, each times its number of `left`. */
function addFour(to: Float32Array, begin: number, N: number, left: Float32Array, place: number, perKey: number, right: Float32Array, from: number): void {
  const [a, b, c, d] = [left[place] as number, left[place + perKey] as number, left[place + 2 * perKey] as number, left[place + 3 * perKey] as number];
  for (let column = 0; column < N; column++) {
    const one = from + column;
    to[begin + column] =
      (to[begin + column] as number) +
      a * (right[one] as number) +
      b * (right[one + N] as number) +
      c * (right[one + 2 * N] as number) +
      d * (right[one + 3 * N] as number);
  }
}

/** By the module that `web/lattice/lattice.wasm` compiles to, in a memory as large as the largest product needs. */
export async function productsOf(lattice: WebAssembly.Module): Promise<Products> {
  const machine = await machineOf(lattice);
  const begin = machine.room(0);
  let had = 0;
  return {
    add({ to, left, right, M, N, K, leftTurned, rightTurned }) {
      const needed = 4 * (to.length + left.length + right.length);
      if (needed > had) {
        machine.room(needed - had);
        had = needed;
      }
      const [second, third] = [begin + 4 * to.length, begin + 4 * (to.length + left.length)];
      const sums = machine.reals(begin, to.length);
      sums.set(to);
      machine.reals(second, left.length).set(left);
      machine.reals(third, right.length).set(right);
      if (rightTurned) machine.loops.multiplyTurned(begin, second, third, M, N, K);
      else machine.loops.multiply(begin, second, third, M, N, K, leftTurned ? 1 : K, leftTurned ? M : 1);
      to.set(sums);
    },
  };
}
