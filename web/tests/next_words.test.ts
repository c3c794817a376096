import { readFileSync } from "node:fs";

import * as ort from "onnxruntime-web/wasm";
import { describe, expect, test } from "vitest";

import { nextWordsOf } from "../train/next_words.ts";

const graphOf = (name: string): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(new URL(`fixtures/steps/${name}.onnx`, import.meta.url)));

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

test("a graph of 8 bits is refused with the way out", () => {
  expect(() => nextWordsOf(graphOf("eight_bits"))).toThrow(/the operator Transpose .* without --quantize/);
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
