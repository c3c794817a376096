import { readFileSync } from "node:fs";

import * as ort from "onnxruntime-web/wasm";
import { describe, expect, test } from "vitest";

import { PAD } from "../train/ids.ts";
import { nextWordsOf } from "../train/next_words.ts";
import { PLAIN, productsOf, type Products } from "../train/products.ts";
import { stepperOf } from "../train/stepper.ts";
import { LATTICE } from "./lattice.ts";

const graphOf = (name: string): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(new URL(`fixtures/graphs/${name}.onnx`, import.meta.url)));

/** Log probabilities after each word, by ONNX Runtime. */
async function byRuntime(session: ort.InferenceSession, ids: readonly number[]): Promise<readonly Float32Array[]> {
  const states = session.inputMetadata.filter((each) => each.isTensor && !["word", "k"].includes(each.name));
  let carried: Record<string, ort.Tensor> = Object.fromEntries(states.map((each) => {
    const width = Number(each.isTensor ? each.shape[1] : 0);
    return [each.name, new ort.Tensor("float32", new Float32Array(width), [1, width])];
  }));
  const logs: Float32Array[] = [];
  for (const id of ids) {
    const found = await session.run({ ...carried, word: new ort.Tensor("int64", [BigInt(id)], [1]), k: new ort.Tensor("int64", [1n], [1]) });
    carried = Object.fromEntries(states.map(({ name }) => [name, found[`${name}_after`] as ort.Tensor]));
    logs.push(Float32Array.from(found["log_probabilities"]?.data as Float32Array));
  }
  return logs;
}

describe.each(["cifg", "tied", "gru", "strange"])("the step of %s", (name) => {
  test("has ONNX Runtime's log probabilities behind every word", async () => {
    const graph = graphOf(name);
    let seed = 1;
    ort.env.wasm.numThreads = 1;
    const session = await ort.InferenceSession.create(graph);
    const words = nextWordsOf(graph);
    expect(words.size).toBe(30);
    let most = 0;
    for (let sentence = 0; sentence < 20; sentence++) {
      const ids = Array.from({ length: 10 }, () => (seed = (seed * 48_271) % 2_147_483_647) % 30);
      const expected = await byRuntime(session, ids);
      let state = words.begin();
      for (const [at, id] of ids.entries()) {
        const found = words.step(state, id);
        state = found.state;
        found.logs.forEach((each, word) => (most = Math.max(most, Math.abs(each - (expected[at]?.[word] as number)))));
      }
    }
    expect(most).toBeLessThan(1e-4);
  });

  test("goes on from a state as often as it is asked to", () => {
    const words = nextWordsOf(graphOf(name));
    const { state } = words.step(words.begin(), 7);
    const before = state.map((each) => each.slice());
    const first = words.step(state, 8).logs;
    words.step(state, 9);
    expect(words.step(state, 8).logs).toEqual(first);
    expect(state).toEqual(before);
  });
});

const SIZE = 30; // words that a network knows, and special ones
const COLUMNS = 8;

/** Numbers of 0 to 1 that are the same every time. */
function drawn(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

/** Sentences of 0 to 7 words, padded, as a batch has them. */
function sentencesOf(rows: number, draw: () => number): Float64Array<ArrayBuffer> {
  const ids = new Float64Array(rows * COLUMNS).fill(PAD);
  for (let row = 0; row < rows; row++) {
    const words = Math.floor(draw() * COLUMNS);
    for (let at = 0; at <= words; at++) ids[row * COLUMNS + at] = 1 + Math.floor(draw() * (SIZE - 1));
  }
  return ids;
}

describe.each(["cifg", "tied", "gru", "strange"])("a step of training of %s", (name) => {
  test("has ONNX Runtime's loss and parameters, for batches of any size, one after another", async () => {
    ort.env.wasm.numThreads = 1;
    const graph = graphOf(`${name}.train`);
    const session = await ort.InferenceSession.create(graph);
    const shapes = session.inputMetadata.flatMap((each) => (each.isTensor && !["sentences", "learning_rate"].includes(each.name) ? [{ name: each.name, dims: each.shape as number[] }] : []));
    const stepper = stepperOf(graph, await productsOf(LATTICE));
    const draw = drawn(7);
    const model = Float32Array.from({ length: stepper.parameters }, () => draw() - 0.5);
    let apart = 0;
    for (const rows of [3, 1, 5, 3, 8]) {
      const ids = sentencesOf(rows, draw);
      const given: Record<string, ort.Tensor> = {
        sentences: new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), [rows, COLUMNS]),
        learning_rate: new ort.Tensor("float32", [0.5], []),
      };
      let at = 0;
      for (const { name: parameter, dims } of shapes) given[parameter] = new ort.Tensor("float32", model.slice(at, (at += dims.reduce((a, b) => a * b, 1))), dims);
      const expected = await session.run(given);
      const before = model.slice();
      const loss = stepper.descend(model, { ids, rows, columns: COLUMNS }, 0.5);
      expect(loss).toBeCloseTo(Number(expected["loss"]?.data[0]), 4);
      at = 0;
      for (const { name: parameter } of shapes) for (const each of expected[`${parameter}_after`]?.data as Float32Array) apart = Math.max(apart, Math.abs(each - (model[at++] as number)));
      expect(Math.max(...model.map((each, place) => Math.abs(each - (before[place] as number))))).toBeGreaterThan(0.01);
    }
    expect(apart).toBeLessThan(2e-5);
  });

  test("of no words at all moves nothing", () => {
    const stepper = stepperOf(graphOf(`${name}.train`));
    const model = Float32Array.from({ length: stepper.parameters }, (_, at) => Math.sin(at));
    const before = model.slice();
    expect(stepper.descend(model, { ids: new Float64Array(2 * COLUMNS).fill(PAD), rows: 2, columns: COLUMNS }, 0.5)).toBe(0);
    expect(model).toEqual(before);
  });
});

/** As the sum says it. */
function obvious({ to, left, right, M, N, K, leftTurned, rightTurned }: Parameters<Products["add"]>[0]): void {
  for (let row = 0; row < M; row++) {
    for (let column = 0; column < N; column++) {
      for (let key = 0; key < K; key++) {
        const one = left[leftTurned ? key * M + row : row * K + key] as number;
        to[row * N + column] = (to[row * N + column] as number) + one * (right[rightTurned ? column * K + key : key * N + column] as number);
      }
    }
  }
}

test.each([["plain", async () => PLAIN], ["by the loops", async () => productsOf(LATTICE)]] as const)("products of matrices of any sizes, %s, are the obvious ones", async (_, made) => {
  const [products, draw] = [await made(), drawn(3)];
  for (let round = 0; round < 150; round++) {
    const [M, N, K] = [1 + Math.floor(draw() * 9), 1 + Math.floor(draw() * 40), 1 + Math.floor(draw() * 21)];
    const [leftTurned, rightTurned] = [round % 3 === 1, round % 3 === 2];
    const numbers = (count: number): Float32Array => Float32Array.from({ length: count }, () => draw() - 0.5);
    const product = { left: numbers(M * K), right: numbers(K * N), M, N, K, leftTurned, rightTurned };
    const [found, expected] = [numbers(M * N), new Float32Array(M * N)];
    expected.set(found);
    products.add({ ...product, to: found });
    obvious({ ...product, to: expected });
    expect(Math.max(...found.map((each, at) => Math.abs(each - (expected[at] as number))))).toBeLessThan(1e-5);
  }
});

test("a graph of 8 bits is refused with the way out", () => {
  expect(() => nextWordsOf(graphOf("eight_bits"))).toThrow(/the operator MatMulInteger,.* without --quantize/);
});

test("a graph that is cut off anywhere, or has a byte changed, is refused or read, and never hangs or reads beyond it", () => {
  const whole = graphOf("cifg");
  for (let length = 0; length < whole.length; length += 7) expect(() => nextWordsOf(whole.slice(0, length))).toThrow(/cannot be used/);
  for (let at = 0; at < whole.length; at += 11) {
    const changed = whole.slice();
    changed[at] = (changed[at] as number) ^ 255;
    try {
      const words = nextWordsOf(changed);
      words.step(words.begin(), 3);
    } catch (thrown) {
      expect(String(thrown)).toMatch(/cannot be used/);
    }
  }
});
