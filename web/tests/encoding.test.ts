/** An update as whole numbers, beside the whole matrix and the bounds that are promised. */

import { describe, expect, test } from "vitest";

import { sha256, utf8 } from "../core/bytes.ts";
import {
  behindOf,
  encode,
  encodedReport,
  factorsOf,
  largestOf,
  lengthOf,
  longestSquaredOf,
  paleyMatrix,
  refuseEncoding,
  rotate,
  type EncodingNumbers,
} from "../core/encoding.ts";
import { Refused } from "../core/errors.ts";
import { machineOf } from "../core/seal/machine.ts";
import { stream } from "../core/seal/secrets.ts";
import { LATTICE } from "./lattice.ts";
import { seeded } from "./seeded.ts";

const ORDERS = Array.from({ length: 256 }, (_, number) => number + 1).filter((dimension) => {
  try {
    return factorsOf(dimension).power === 1;
  } catch {
    return false;
  }
});

function numbersOf(parameters: number, dimension: number, scale: number, clipNorm = 1): EncodingNumbers {
  return { parameters, dimension, clip_norm: clipNorm, scale, report_goal: 10, sigmas: 10, margin: 0 };
}

/** The entries of the matrix: Paley's times Sylvester's, whose entry is -1 to the number of common bits. */
function matrixOf(dimension: number): (row: number, column: number) => number {
  const { order, power } = factorsOf(dimension);
  const paley = paleyMatrix(order);
  return (row, column) => {
    let entry = paley[Math.floor(row / power)]![Math.floor(column / power)]!;
    for (let common = (row % power) & (column % power); common > 0; common &= common - 1) entry = -entry;
    return entry;
  };
}

test("Paley's matrices have orthogonal rows of 1 and -1", () => {
  expect(ORDERS).toEqual([
    1, 12, 20, 28, 36, 44, 60, 68, 76, 84, 104, 108, 124, 132, 140, 148, 164, 180, 196, 200, 204, 212, 220, 228, 252,
  ]);
  for (const order of ORDERS) {
    const matrix = paleyMatrix(order);
    expect(matrix.flat().every((each) => Math.abs(each) === 1)).toBe(true);
    for (const [at, row] of matrix.entries()) {
      const products = matrix.map((other) => row.reduce((sum, each, place) => sum + each * other[place]!, 0));
      expect(products).toEqual(matrix.map((_, other) => (other === at ? order : 0)));
    }
  }
});

test("a rotation is a product with the whole matrix", async () => {
  const chance = seeded(1);
  for (const dimension of [1, 2, 4, 8, 12, 24, 20, 40, 56, 64, 148, 96, 192, 256, 296, 592, 2048]) {
    const machine = await machineOf(LATTICE);
    // Whole numbers, so that sums are exact.
    const vector = Float32Array.from({ length: dimension }, () => chance.below(2001) - 1000);
    const at = machine.room(4 * dimension);
    machine.reals(at, dimension).set(vector);
    rotate(machine, at, dimension);
    const found = machine.reals(at, dimension);
    const entry = matrixOf(dimension);
    for (const row of dimension > 300
      ? [0, 1, 17, dimension - 1]
      : Array.from({ length: dimension }, (_, each) => each)) {
      expect(found[row]).toBe(vector.reduce((sum, each, column) => sum + each * entry(row, column), 0));
    }
  }
});

test("integers are within the bounds, whatever the update and the draws are", async () => {
  const chance = seeded(2);
  for (let turn = 0; turn < 150; turn++) {
    const dimension = [1, 8, 12, 64, 148, 592, 1024][chance.below(7)]!;
    const encoding = numbersOf(
      1 + chance.below(dimension),
      dimension,
      2 ** (chance.below(12) - 2),
      2 ** (chance.below(7) - 3),
    );
    const size = 10 ** (chance.below(9) - 4);
    const update = Float32Array.from(
      { length: encoding.parameters },
      () => (chance.unit() - 0.5) * size * (chance.below(4) === 0 ? 100 : 1),
    );
    const [signs, rounding] = [await sha256(utf8(`signs ${turn}`)), await sha256(utf8(`rounding ${turn}`))];
    const words = await encode(LATTICE, update, encoding, signs, rounding);
    const largest = largestOf(encoding);
    expect(words.length).toBe(dimension);
    const whole = [...words].map((each) => each - largest);
    expect(whole.every((each) => Math.abs(each) <= largest)).toBe(true);
    expect(whole.reduce((sum, each) => sum + each * each, 0)).toBeLessThanOrEqual(longestSquaredOf(encoding));
  }
});

test("on average the integers are the update, clipped, with the round's signs, rotated", async () => {
  const encoding = numbersOf(7, 8, 4);
  const update = Float32Array.from([0.5, -0.25, 3, 0, 1, -2, 0.125]);
  const signs = new Uint8Array(32).fill(200);
  const bits = await stream(signs)(1);
  const norm = Math.hypot(...update);
  const entry = matrixOf(8);
  const expected = Array.from(
    { length: 8 },
    (_, row) =>
      update.reduce((sum, each, column) => sum + ((bits[0]! >> column) & 1 ? -1 : 1) * each * entry(row, column), 0) *
      (4 / norm / Math.sqrt(8)),
  );
  const turns = 500;
  const sums = new Array<number>(8).fill(0);
  for (let turn = 0; turn < turns; turn++) {
    const words = await encode(LATTICE, update, encoding, signs, await sha256(utf8(String(turn))));
    words.forEach((each, place) => (sums[place]! += (each - largestOf(encoding)) / turns));
  }
  // Repeating what is too long pulls a little toward zero; five standard deviations of a mean are on top.
  sums.forEach((each, place) => expect(Math.abs(each - expected[place]!)).toBeLessThan(0.1 + 2.5 / Math.sqrt(turns)));
});

test("what is rounded toward zero becomes no longer", async () => {
  const machine = await machineOf(LATTICE);
  const chance = seeded(3);
  const numbers = Float32Array.from({ length: 500 }, () => (chance.unit() - 0.5) * 200);
  const [at, out] = [machine.room(2000), machine.room(2000)];
  machine.reals(at, 500).set(numbers);
  machine.loops.roundToZero(at, 500, 0.75, 100, out);
  expect([...machine.words(out, 500)]).toEqual([...numbers].map((each) => Math.trunc(each * 0.75) + 100));
});

describe("what stands behind the coordinates", () => {
  const encoding = numbersOf(5, 8, 2); // C_inf 8: digits to the base 17

  test("is 1, the bit where it is asked for, and the digits of the loss", () => {
    expect(largestOf(encoding)).toBe(8);
    expect(behindOf(encoding, null, null)).toEqual([1]);
    expect(behindOf(encoding, true, null)).toEqual([1, 1]);
    expect(behindOf(encoding, false, null)).toEqual([1, 0]);
    for (const [value, whole] of [
      [0, 32768],
      [5, 65536],
      [-5, 0],
      [1.00003, 32768 + 6553],
      [-1.00003, 32768 - 6553],
    ] as const) {
      const digits = behindOf(encoding, null, { value, bound: 10 }).slice(1);
      expect(digits.length).toBe(4); // of 65,536
      expect(digits.every((each) => each >= 0 && each < 17)).toBe(true);
      expect(digits.reduceRight((sum, each) => sum * 17 + each, 0)).toBe(whole);
    }
  });

  test("makes a report's length", async () => {
    const update = new Float32Array(5);
    for (const [short, loss] of [
      [null, null],
      [true, null],
      [false, { value: 1, bound: 4 }],
    ] as const) {
      const words = await encodedReport(LATTICE, update, { ...encoding, signs: "00".repeat(32) }, short, loss);
      expect(words.length).toBe(lengthOf(encoding, short !== null, loss !== null));
      expect([...words.slice(encoding.dimension)]).toEqual(behindOf(encoding, short, loss));
    }
  });
});

describe("bad input", () => {
  test.each([
    [numbersOf(9, 8, 2), /8 coordinates does not hold 9 parameters/],
    [numbersOf(5, 10, 2), /no Hadamard matrix of 10 rows/],
    [numbersOf(5, 8, 1e9), /finer than float32/],
    [{ ...numbersOf(5, 8, 1e5), report_goal: 1e6 }, /bits a coordinate, and words have 32/],
  ])("an encoding that is none is refused: %#", (encoding, said) => {
    expect(() => refuseEncoding(encoding)).toThrow(Refused);
    expect(() => refuseEncoding(encoding)).toThrow(said);
  });

  test("an update of another length, or with a number that is none, is not encoded", async () => {
    const seed = new Uint8Array(32);
    for (const update of [
      new Float32Array(4),
      Float32Array.from([1, 2, NaN, 3, 4]),
      Float32Array.from([Infinity, 2, 1, 3, 4]),
    ]) {
      await expect(encode(LATTICE, update, numbersOf(5, 8, 2), seed, seed)).rejects.toThrow(RangeError);
    }
  });
});
