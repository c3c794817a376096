import { expect, test } from "vitest";

import { readPlan } from "../core/documents.ts";
import { Refused } from "../core/errors.ts";
import { costOf, encodingFactor, readMatrix, refuseMatrix } from "../core/price.ts";
import { readTensor, tensorFile } from "../core/safetensors.ts";
import { PLAIN, planSaid, RECIPE, TRAINING } from "./plans.ts";
import { utf8, joined } from "../core/bytes.ts";

function trained(mechanism: string, privacy: object, recipe: string = "", more: object = {}) {
  const name = /name = "(.*)"/.exec(mechanism)?.[1] ?? "";
  const text = RECIPE.slice(0, RECIPE.indexOf("[privacy.mechanism]")) + `[privacy.mechanism]\n${mechanism}\n${recipe}`;
  return readPlan(
    planSaid({ recipe: text, privacy: { ...TRAINING, zcdp: 1e6, epsilon: 1e9, mechanism: name, ...privacy }, ...more }),
  );
}

test("a plan that tacit signed: a tree with a restart, epsilon 8 at 1e-5", () => {
  const recipe = `[rounds]\nrounds = 24\nreport_goal = 3\n[privacy.mechanism]\nname = "tree"\nrestarts = [16]\n`;
  const privacy = {
    ...TRAINING,
    zcdp: 1.3878289750912542,
    rounds: 24,
    max_participations: 6,
    epsilon: 7.999999995166375,
    mechanism: "tree",
    noise_multiplier: 4.070951635153882,
  };
  const plan = readPlan(planSaid({ recipe, privacy }));
  const cost = costOf(plan, null);
  expect(cost.zcdp).toBeCloseTo(1.3878289750912542, 14);
  expect(cost.spent([0])).toBeCloseTo(5 / (2 * 4.070951635153882 ** 2), 14);
  expect(cost.spent([23])).toBe(cost.spent([0])); // as if it were the dearest
  for (const less of [{ zcdp: 1.3878 }, { epsilon: 7.99 }]) {
    expect(() => costOf(readPlan(planSaid({ recipe, privacy: { ...privacy, ...less } })), null)).toThrow("claims");
  }
});

test("another, encoded, whose recipe has the designed coefficients", () => {
  const recipe = `[rounds]\nrounds = 24\nreport_goal = 3\n[privacy.mechanism]\nname = "banded-toeplitz"
coefficients = [1.0, 0.6457616987894472, 0.5286621518153466, 0.44060065437176993]
[aggregation]\nkind = "secure"\ninflation = 1.01\n`;
  const privacy = {
    ...TRAINING,
    zcdp: 1.3878289750912542,
    rounds: 24,
    max_participations: 6,
    epsilon: 8,
    noise_multiplier: 2.0418142914436674,
  };
  const plan = readPlan(planSaid({ recipe, privacy, aggregation: { ...PLAIN, kind: "encoded" } }));
  expect(costOf(plan, null).zcdp).toBeCloseTo(1.3878289750912542, 14);
  expect(() =>
    costOf(
      readPlan(
        planSaid({ recipe: recipe.replace("1.01", "0.5"), privacy, aggregation: { ...PLAIN, kind: "encoded" } }),
      ),
      null,
    ),
  ).toThrow("no encoding shortens");
});

test("the encoding's factor of the accounting page", () => {
  expect(encodingFactor(2 ** 22, 5, 1448)).toBeCloseTo(1.01003, 5);
});

test.each([
  ['name = "independent"', 3],
  ['name = "tree"', 13],
  ['name = "square-root"\nbands = 1', 3],
  ['name = "lambda-cgd"\ncoefficients = [1.0, 0.0]', 3],
])("%s costs what its matrix says", (mechanism, squared) => {
  expect(costOf(trained(mechanism, {}), null).spent([0, 4, 8]) * 98).toBeCloseTo(squared, 9);
  expect(() => costOf(trained(mechanism, { zcdp: (0.999999 * squared) / 98 }), null)).toThrow("claims a zCDP");
  costOf(trained(mechanism, { zcdp: squared / 98 }), null);
});

test.each([
  ["numbers that are not given", trained('name = "blt"', {}), "not given in numbers"],
  ["a mechanism of a package", trained('name = "mine.module:Noise"', {}), "does not know"],
  [
    "another mechanism than the recipe's",
    trained('name = "tree"', { mechanism: "independent" }),
    "privacy.mechanism.name",
  ],
  ["other rounds", trained('name = "tree"', { rounds: 13 }), "rounds.rounds"],
  ["another report goal", trained('name = "tree"', { report_goal: 4 }), "rounds.report_goal"],
  ["a seed", trained('name = "tree"', {}, "[run]\nseed = 1"), "run.seed"],
  ["a restart that is none", trained('name = "tree"\nrestarts = [0]', {}), "restarts"],
  ["a recipe that is no TOML", readPlan(planSaid({ recipe: "= 3" })), "no TOML"],
  ["a matrix that did not come", trained('name = "banded"', { matrix: matrixSaid("banded", 4) }), "not fetched"],
])("refused: %s", (_, plan, because) => {
  expect(() => costOf(plan, null)).toThrow(Refused);
  expect(() => costOf(plan, null)).toThrow(because);
});

function matrixSaid(kind: string, bands: number, rounds = 12) {
  const sha256 = "00".repeat(32);
  return { kind, rounds, bands, sha256, bytes: 1000, path: `/v1/models/${sha256}` };
}

function matrixFile(numbers: readonly number[]): Uint8Array {
  const data = new Uint8Array(Float64Array.from(numbers).buffer);
  const header = utf8(
    JSON.stringify({ matrix: { dtype: "F64", shape: [numbers.length], data_offsets: [0, data.length] } }),
  );
  const length = new Uint8Array(8);
  new DataView(length.buffer).setUint32(0, header.length, true);
  return joined(length, header, data);
}

test("a matrix by its columns and a Toeplitz column are the same strategy", () => {
  const column = [1, 0.5, 0.375, 0.25];
  const numbers = Array.from({ length: 12 }, (_, j) => column.map((each, i) => (i + j < 12 ? each : 0))).flat();
  const plan = trained('name = "banded"', { zcdp: 1, matrix: matrixSaid("banded", 4) });
  refuseMatrix(plan);
  const toeplitz = trained('name = "banded-toeplitz"\ncoefficients = [1.0, 0.5, 0.375, 0.25]', { zcdp: 1 });
  expect(costOf(plan, matrixFile(numbers)).spent([0, 4, 8])).toBeCloseTo(costOf(toeplitz, null).spent([0, 4, 8]), 12);
  const rows = Array.from({ length: 12 }, (_, i) =>
    Array.from({ length: 12 }, (_, j) => (i >= j ? (column[i - j] ?? 0) : 0)),
  ).flat();
  const dense = trained('name = "dense"', { zcdp: 1, matrix: matrixSaid("dense", 12) });
  expect(costOf(dense, matrixFile(rows)).spent([0, 4, 8])).toBeCloseTo(costOf(toeplitz, null).spent([0, 4, 8]), 12);
});

test("matrices that are none, and those that would not be computed, are refused", () => {
  const said = readPlan(planSaid({ privacy: { ...TRAINING, matrix: matrixSaid("dense", 2, 2) } })).privacy;
  if (said.kind !== "training" || said.matrix === null) throw new Error();
  expect(readMatrix(matrixFile([1, 0, 0.5, 2]), said.matrix).numbers).toEqual(Float64Array.of(1, 0.5, 2, 0));
  for (const numbers of [
    [1, 0.1, 0.5, 2],
    [0, 0, 0.5, 2],
    [1, 0, 1e101, 2],
    [1, 0, NaN, 2],
    [1, 0, 2],
  ]) {
    expect(() => readMatrix(matrixFile(numbers), said.matrix as never)).toThrow(Refused);
  }
  const plan = (kind: string, bands: number, rounds = 12) =>
    trained('name = "dense"', { rounds, matrix: matrixSaid(kind, bands, rounds), max_participations: null });
  expect(() => refuseMatrix(plan("dense", 11))).toThrow("number of bands");
  expect(() => refuseMatrix(plan("dense", 2000, 2000))).toThrow("more bands than twice");
  expect(() => refuseMatrix(plan("dense", 2049, 2049))).toThrow(Refused);
});

test("with a timer alone nobody knows the worst case beforehand, and rounds have their own cost", () => {
  const plan = trained('name = "independent"', {}, "", {
    separation: { rounds: null, timer_seconds: 10, clock: "start" },
  });
  const cost = costOf(plan, null);
  expect(cost.zcdp).toBe(1e6);
  expect(cost.spent([3, 8])).toBeCloseTo(2 / 98, 14);
});

test("histograms, sums and local reports", () => {
  const all = { zcdp: 1, report_goal: 3, rounds: 1, max_participations: 1 };
  const histograms = { ...all, kind: "histograms", epsilon: 9, delta: 1e-5, histograms: [2], noise_multiplier: 2 };
  expect(costOf(readPlan(planSaid({ kind: "evaluate", privacy: histograms })), null).spent([0])).toBe(1 / 8);
  const local = { ...all, kind: "local", local_epsilon: 1 };
  const cost = costOf(readPlan(planSaid({ kind: "evaluate", privacy: local })), null);
  expect([cost.zcdp, cost.localEpsilon, cost.spent([0])]).toEqual([0.5, 1, 0.5]);
  const less = readPlan(planSaid({ kind: "evaluate", privacy: { ...local, zcdp: 0.4 } }));
  expect(() => costOf(less, null)).toThrow("a zCDP of 0.4");
});

test("tensors: what is written is read, and every byte that is wrong is refused", () => {
  const file = tensorFile("update", Float32Array.of(0.25, -0.5, 0), { assignment: "01".repeat(16), usable: "true" });
  expect(file.length).toBe(8 + 512 + 12);
  expect(readTensor(file, "update", "F32", 3)).toEqual(Float32Array.of(0.25, -0.5, 0));
  for (const read of [
    () => readTensor(file, "update", "F64", 3),
    () => readTensor(file, "update", "F32", 4),
    () => readTensor(file, "words", "F32", 3),
    () => readTensor(file.slice(0, -1), "update", "F32", 3),
    () => readTensor(file.slice(0, 4), "update", "F32", 3),
    () => readTensor(joined(file, Uint8Array.of(0)), "update", "F32", 3),
  ])
    expect(read).toThrow(Refused);
  expect(() => tensorFile("update", new Float32Array(1), { note: "x".repeat(500) })).toThrow(RangeError);
});
