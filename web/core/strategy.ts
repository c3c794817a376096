/** Strategy matrices C, which correlate the noise C^-1 Z of rounds: what the rounds of one device cost. */

import { Refused } from "./errors.ts";

/** C is Toeplitz: its first column, of so many rounds. */
export interface Toeplitz {
  readonly kind: "toeplitz";
  readonly column: Float64Array;
}

/** Complete binary trees over the rounds, one from each of `starts` to the next: C has a row for each complete node. */
export interface Trees {
  readonly kind: "trees";
  readonly rounds: number;
  readonly starts: readonly number[];
}

/** C in numbers, by columns: `numbers[j * bands + i]` is C[j + i, j]. */
export interface Matrix {
  readonly kind: "matrix";
  readonly rounds: number;
  readonly bands: number;
  readonly numbers: Float64Array;
}

export type Strategy = Toeplitz | Trees | Matrix;

export function roundsOf(strategy: Strategy): number {
  return strategy.kind === "toeplitz" ? strategy.column.length : strategy.rounds;
}

/** (C^T C)[i, j]. */
export function gram(strategy: Strategy, i: number, j: number): number {
  const [first, second] = i < j ? [i, j] : [j, i];
  if (strategy.kind === "trees") return commonNodes(strategy, first, second);
  const apart = second - first;
  let sum = 0;
  if (strategy.kind === "toeplitz") {
    const { column } = strategy;
    for (let at = 0; second + at < column.length; at++) sum += (column[at] as number) * (column[at + apart] as number);
    return sum;
  }
  const { bands, numbers } = strategy;
  for (let at = 0; at + apart < bands; at++) {
    sum += (numbers[second * bands + at] as number) * (numbers[first * bands + at + apart] as number);
  }
  return sum;
}

/** The sum of |(C^T C)[i, j]| over all pairs of rounds: what they cost, times 2 z^2. */
export function spentSquared(strategy: Strategy, rounds: readonly number[]): number {
  let sum = 0;
  for (const i of rounds) for (const j of rounds) sum += Math.abs(gram(strategy, i, j));
  return sum;
}

/** How many complete nodes hold both rounds. */
function commonNodes({ rounds, starts }: Trees, first: number, second: number): number {
  const tree = starts.findLastIndex((start) => start <= first);
  const start = starts[tree] as number;
  const end = starts[tree + 1] ?? rounds;
  if (second >= end) return 0;
  let count = 0;
  for (let size = 1; size <= end - start; size *= 2) {
    const node = Math.floor((first - start) / size);
    if (node === Math.floor((second - start) / size) && start + (node + 1) * size <= end) count++;
  }
  return count;
}

/** The first column of C from these first coefficients of it. Throws: Refused where they make no strategy. */
export function fromColumn(coefficients: readonly number[], rounds: number): Toeplitz {
  refuseColumn(coefficients);
  const column = new Float64Array(rounds);
  column.set(coefficients.slice(0, rounds));
  return { kind: "toeplitz", column };
}

/** C of these first coefficients of C^-1, the rest of which are zero. Throws: Refused as above. */
export function fromInverse(coefficients: readonly number[], rounds: number): Toeplitz {
  refuseColumn(coefficients);
  const column = new Float64Array(rounds);
  const diagonal = coefficients[0] as number;
  column[0] = 1 / diagonal;
  for (let at = 1; at < rounds; at++) {
    let sum = 0;
    for (let lag = 1; lag < coefficients.length && lag <= at; lag++) {
      sum += (coefficients[lag] as number) * (column[at - lag] as number);
    }
    column[at] = -sum / diagonal;
  }
  if (!column.every(Number.isFinite))
    throw new Refused("the coefficients of the plan's mechanism grow beyond all bounds.");
  return { kind: "toeplitz", column };
}

/** A BLT: c_0 = 1, and c_t is the sum of omega theta^(t - 1) over its buffers. Throws: Refused as above. */
export function fromBuffers(theta: readonly number[], omega: readonly number[], rounds: number): Toeplitz {
  if (theta.length === 0 || theta.length !== omega.length)
    throw new Refused("a BLT has as many theta as omega, one at least.");
  if (!theta.every((each) => each > 0 && each <= 1))
    throw new Refused("every theta of a BLT is above 0 and at most 1.");
  if (!omega.every((each) => each > 0 && Number.isFinite(each))) throw new Refused("every omega of a BLT is above 0.");
  const column = new Float64Array(rounds);
  column[0] = 1;
  const weights = Float64Array.from(omega);
  for (let at = 1; at < rounds; at++) {
    let sum = 0;
    for (let buffer = 0; buffer < weights.length; buffer++) {
      sum += weights[buffer] as number;
      weights[buffer] = (weights[buffer] as number) * (theta[buffer] as number);
    }
    column[at] = sum;
  }
  return { kind: "toeplitz", column };
}

/** The first coefficients of (1 - x)^power, for the power 1/2 or -1/2. */
export function binomial(power: number, count: number): number[] {
  const found = [1];
  for (let at = 1; at < count; at++) found.push((found[at - 1] as number) * ((at - 1 - power) / at));
  return found;
}

function refuseColumn(coefficients: readonly number[]): void {
  if (coefficients.length === 0) throw new Refused("the plan's mechanism has no coefficients.");
  if (!coefficients.every(Number.isFinite)) throw new Refused("a coefficient of the plan's mechanism is no number.");
  if (!((coefficients[0] as number) > 0))
    throw new Refused("the first coefficient of the plan's mechanism is not above 0.");
}
