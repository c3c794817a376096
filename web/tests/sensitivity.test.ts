import { describe, expect, test } from "vitest";

import { epsilonOf } from "../core/epsilon.ts";
import { Refused } from "../core/errors.ts";
import { participation, sensitivitySquared, type Participation } from "../core/sensitivity.ts";
import {
  binomial,
  fromBuffers,
  fromColumn,
  fromInverse,
  gram,
  roundsOf,
  spentSquared,
  type Matrix,
  type Strategy,
  type Trees,
} from "../core/strategy.ts";
import { seeded } from "./seeded.ts";

const draw = seeded(2026);

/** C as a list of rows: by the definition of each strategy. */
function dense(strategy: Strategy): number[][] {
  const rounds = roundsOf(strategy);
  const places = Array.from({ length: rounds }, (_, at) => at);
  if (strategy.kind === "toeplitz") {
    return places.map((i) => places.map((j) => (i >= j ? (strategy.column[i - j] as number) : 0)));
  }
  if (strategy.kind === "matrix") {
    const { bands, numbers } = strategy;
    return places.map((i) => places.map((j) => (i >= j && i - j < bands ? (numbers[j * bands + i - j] as number) : 0)));
  }
  const rows: number[][] = [];
  for (const [tree, start] of strategy.starts.entries()) {
    const end = strategy.starts[tree + 1] ?? rounds;
    for (let size = 1; size <= end - start; size *= 2) {
      for (let from = start; from + size <= end; from += size)
        rows.push(places.map((at) => (at >= from && at < from + size ? 1 : 0)));
    }
  }
  return rows;
}

function slowSpent(strategy: Strategy, came: readonly number[]): number {
  const rows = dense(strategy);
  let sum = 0;
  for (const i of came) {
    for (const j of came) sum += Math.abs(rows.reduce((dot, row) => dot + (row[i] as number) * (row[j] as number), 0));
  }
  return sum;
}

/** The worst of all patterns, one by one. */
function slowest(strategy: Strategy, limits: Participation): number {
  const rows = dense(strategy);
  const pairs = rows[0]?.map((_, i) =>
    rows[0]?.map((_, j) => rows.reduce((sum, row) => sum + (row[i] as number) * (row[j] as number), 0)),
  );
  let most = 0;
  const go = (from: number, came: readonly number[]): void => {
    let sum = 0;
    for (const i of came) for (const j of came) sum += Math.abs(pairs?.[i]?.[j] as number);
    most = Math.max(most, sum);
    if (came.length === limits.maxParticipations) return;
    for (let at = from; at < limits.rounds; at++) go(at + limits.minSeparation, [...came, at]);
  };
  go(0, []);
  return most;
}

function someLimits(rounds: number): Participation {
  const minSeparation = 1 + draw.below(Math.min(6, rounds));
  return participation(rounds, minSeparation, draw.below(2) ? null : 1 + draw.below(5));
}

function someTrees(rounds: number): Trees {
  const starts = [0];
  for (let at = 1; at < rounds; at++) if (draw.below(8) === 0) starts.push(at);
  return { kind: "trees", rounds, starts };
}

function someMatrix(rounds: number, bands: number, signs: boolean): Matrix {
  const numbers = new Float64Array(rounds * bands);
  for (let j = 0; j < rounds; j++) {
    for (let i = 0; i < bands && i + j < rounds; i++)
      numbers[j * bands + i] = draw.unit() - (signs ? 0.5 : 0) + (i === 0 ? 1 : 0);
  }
  return { kind: "matrix", rounds, bands, numbers };
}

describe("against every pattern, one by one", () => {
  test("trees, restarts included", () => {
    for (let trial = 0; trial < 150; trial++) {
      const rounds = 1 + draw.below(15);
      const [strategy, limits] = [someTrees(rounds), someLimits(rounds)];
      expect(sensitivitySquared(strategy, limits)).toEqual({ squared: slowest(strategy, limits), exact: true });
    }
  });
  test("falling columns", () => {
    for (let trial = 0; trial < 60; trial++) {
      const rounds = 1 + draw.below(13);
      const coefficients = Array.from({ length: 1 + draw.below(rounds) }, () => draw.unit()).sort((a, b) => b - a);
      const [strategy, limits] = [fromColumn(coefficients, rounds), someLimits(rounds)];
      const found = sensitivitySquared(strategy, limits);
      expect(found.exact).toBe(true);
      expect(found.squared).toBeCloseTo(slowest(strategy, limits), 9);
    }
  });
  test("columns of any sign: a bound", () => {
    for (let trial = 0; trial < 60; trial++) {
      const rounds = 1 + draw.below(12);
      const strategy = fromInverse(
        [1, ...Array.from({ length: draw.below(4) }, () => 1.5 * (draw.unit() - 0.7))],
        rounds,
      );
      const limits = someLimits(rounds);
      expect(sensitivitySquared(strategy, limits).squared).toBeGreaterThanOrEqual(slowest(strategy, limits) - 1e-9);
    }
  });
  test("matrices, of few bands and of many", () => {
    for (let trial = 0; trial < 120; trial++) {
      const rounds = 1 + draw.below(12);
      const strategy = someMatrix(rounds, 1 + draw.below(rounds), draw.below(2) === 1);
      const limits = someLimits(rounds);
      const found = sensitivitySquared(strategy, limits);
      expect(found.squared).toBeCloseTo(slowest(strategy, limits), 9);
      const few = strategy.bands <= 2 * limits.minSeparation || limits.maxParticipations === 1;
      if (few || strategy.numbers.every((each) => each >= 0)) expect(found.exact).toBe(true);
    }
  });
  test("the cost of the rounds that a device took part in", () => {
    for (let trial = 0; trial < 60; trial++) {
      const rounds = 1 + draw.below(12);
      const kinds: readonly Strategy[] = [
        someTrees(rounds),
        someMatrix(rounds, 1 + draw.below(rounds), true),
        fromInverse([1, -0.7, 0.2], rounds),
        fromBuffers([0.9, 0.5], [0.3, 0.1], rounds),
      ];
      const came = Array.from({ length: rounds }, (_, at) => at).filter(() => draw.below(3) === 0);
      for (const strategy of kinds) {
        expect(spentSquared(strategy, came)).toBeCloseTo(slowSpent(strategy, came), 9);
        const more =
          came.length < rounds
            ? [...came, Array.from({ length: rounds }, (_, at) => at).find((at) => !came.includes(at)) as number]
            : came;
        expect(spentSquared(strategy, more)).toBeGreaterThanOrEqual(spentSquared(strategy, came));
      }
    }
  });
});

test("the page's numbers of a plan to train", () => {
  const strategy = fromColumn([1, 0.5, 0.375, 0.25, 0.125, 0.1], 12);
  const spent = spentSquared(strategy, [0, 4, 8]) / (2 * 7 ** 2);
  expect(sensitivitySquared(strategy, participation(12, 4, 3)).squared / (2 * 7 ** 2)).toBeCloseTo(spent, 14);
  expect(spent).toBeCloseTo(slowSpent(strategy, [0, 4, 8]) / 98, 14);
});

test("the accounting page's tree: 79, in little time", () => {
  const began = performance.now();
  const found = sensitivitySquared({ kind: "trees", rounds: 2000, starts: [0] }, participation(2000, 314, 6));
  expect(found).toEqual({ squared: 79, exact: true });
  expect(79 / (2 * 7 ** 2)).toBeCloseTo(0.806122, 6);
  expect(epsilonOf(79 / 98, 1e-10)).toBeCloseTo(8.526, 3);
  expect(performance.now() - began).toBeLessThan(2000);
  const trees: Trees = { kind: "trees", rounds: 20_000, starts: [0] };
  expect(sensitivitySquared({ ...trees, rounds: 10_000 }, participation(10_000, 500, null)).squared).toBe(768);
  expect(() => sensitivitySquared(trees, participation(20_000, 3, null))).toThrow("more than this device computes");
});

test("epsilon: Balle and Wang's example, and by the definition of delta", () => {
  expect(epsilonOf(0.5, 1e-5)).toBeCloseTo(4.3772, 4); // the house's golden number
  expect(epsilonOf(0, 1e-5)).toBe(0);
  expect(epsilonOf(Infinity, 1e-5)).toBe(Infinity);
  let before = 0;
  for (const zcdp of [1e-9, 1e-6, 1e-3, 0.1, 1, 10, 100, 1000]) {
    const epsilon = epsilonOf(zcdp, 1e-6);
    expect(epsilon).toBeGreaterThanOrEqual(before);
    expect(epsilon).toBeLessThanOrEqual(zcdp + 2 * Math.sqrt(zcdp * Math.log(1e6)) + 1e-12); // Bun & Steinke 2016
    before = epsilon;
  }
});

test("closed forms of square roots", () => {
  expect(binomial(-0.5, 4)).toEqual([1, 0.5, 0.375, 0.3125]);
  expect(binomial(0.5, 4)).toEqual([1, -0.5, -0.125, -0.0625]);
  const inverse = fromInverse(binomial(0.5, 30), 30).column;
  for (const [at, each] of binomial(-0.5, 30).entries()) expect(inverse[at]).toBeCloseTo(each, 12);
  expect(gram(fromColumn([1], 3), 0, 1)).toBe(0);
});

test("refused: too many patterns, and numbers that make no strategy", () => {
  const limits = participation(60, 2, null);
  expect(() => sensitivitySquared(someMatrix(60, 60, false), limits)).toThrow("cannot try all patterns");
  expect(() => fromColumn([], 3)).toThrow(Refused);
  expect(() => fromColumn([0, 1], 3)).toThrow(Refused);
  expect(() => fromInverse([1, -1e300, 1e300], 9)).toThrow(Refused);
  expect(() => fromBuffers([1.1], [0.1], 3)).toThrow(Refused);
  expect(() => fromBuffers([0.9], [0.1, 0.2], 3)).toThrow(Refused);
});
