import { readFileSync } from "node:fs";

import { beforeAll, describe, expect, test } from "vitest";

import { loadExported, withParameters, type Exported } from "../train/exported.ts";
import { nextWordsOf } from "../train/next_words.ts";
import { stepperOf } from "../train/stepper.ts";
import { batchesOf, drawnOrder, localUpdate, type Client, type Stepper } from "../train/trainer.ts";
import { encode } from "../train/vocabulary.ts";

interface Expected {
  readonly model: readonly number[];
  readonly texts: readonly string[];
  readonly ids: readonly (readonly number[])[];
  readonly clients: readonly Client[];
  readonly updates: readonly (readonly number[])[];
  readonly losses: readonly number[];
  readonly logs: readonly number[];
}

const folder = new URL("fixtures/training/", import.meta.url);
const read = async (name: string): Promise<Uint8Array<ArrayBuffer>> => new Uint8Array(readFileSync(new URL(name, folder)));
const expected = JSON.parse(readFileSync(new URL("expected.json", folder), "utf8")) as Expected;
const inOrder = (count: number): readonly number[] => Array.from({ length: count }, (_, at) => at);
const normOf = (numbers: Iterable<number>): number => Math.hypot(...numbers);

let exported: Exported;
let stepper: Stepper;

beforeAll(async () => {
  exported = await loadExported(read);
  stepper = stepperOf(exported.train as Uint8Array<ArrayBuffer>);
});

test("the words of a text have Python's ids", () => {
  expect(expected.texts.flatMap((each) => encode(exported.vocabulary, each))).toEqual(expected.ids);
});

describe.each(expected.clients.map((client, at) => ({ client, at })))("an update of client $at", ({ client, at }) => {
  test("is Python's", async () => {
    const batches = batchesOf(expected.ids, inOrder(expected.ids.length), client);
    const found = localUpdate(stepper, Float32Array.from(expected.model), batches, client);
    const wanted = expected.updates[at] as readonly number[];
    expect(normOf(wanted.map((each, place) => each - (found.update[place] as number)))).toBeLessThan(1e-5 * normOf(wanted));
    expect(found.loss).toBeCloseTo(expected.losses[at] as number, 5);
  });
});

test("no text moves nothing", async () => {
  const client = expected.clients[0] as Client;
  const found = localUpdate(stepper, Float32Array.from(expected.model), batchesOf([], [], client), client);
  expect(normOf(found.update)).toBe(0);
  expect(found.loss).toBe(0);
});

test("next words are Python's, and those of other parameters once they are in", () => {
  const ids = (expected.ids[0] as readonly number[]).slice(0, -1);
  const logsOf = (graph: Uint8Array<ArrayBuffer>): Float32Array => {
    const words = nextWordsOf(graph);
    let found = { state: words.begin(), logs: new Float32Array() };
    for (const id of ids) found = words.step(found.state, id);
    return found.logs;
  };
  const train = exported.train as Uint8Array<ArrayBuffer>;
  const before = logsOf(exported.step);
  before.forEach((each, at) => expect(each).toBeCloseTo(expected.logs[at] as number, 4));
  const same = withParameters(exported.step, train, Float32Array.from(expected.model));
  expect(same).toEqual(exported.step);
  const zero = logsOf(withParameters(exported.step, train, new Float32Array(expected.model.length)));
  zero.forEach((each) => expect(each).toBeCloseTo(-Math.log(zero.length), 5));
  expect(() => withParameters(exported.step, train, new Float32Array(3))).toThrow(/not 3 numbers/);
});

test("a file that was changed is refused by its name", async () => {
  const changed = async (name: string): Promise<Uint8Array<ArrayBuffer>> => {
    const bytes = await read(name);
    if (name === "step.onnx") bytes[100] = (bytes[100] as number) ^ 1;
    return bytes;
  };
  await expect(loadExported(changed)).rejects.toThrow("step.onnx is not the file that was exported");
});

test("an order is of all places, and each comes first about as often", () => {
  const first = [0, 0, 0];
  for (let draw = 0; draw < 3000; draw++) {
    const order = drawnOrder(3);
    expect([...order].sort()).toEqual([0, 1, 2]);
    first[order[0] as number] = (first[order[0] as number] as number) + 1;
  }
  first.forEach((count) => expect(Math.abs(count - 1000)).toBeLessThan(150)); // 5.8 standard deviations
});
