/** The graphs of a `tacit export` in ONNX Runtime's WebAssembly, on one thread: a step of training, and next words. */

import * as ort from "onnxruntime-web/wasm";

import { CannotWork, saidBy } from "../core/errors.ts";
import type { Batch, Stepper } from "./trainer.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** What a network carries from word to word. */
export type State = readonly ort.Tensor[];

/** `step.onnx`: one word read, and what comes next. */
export interface NextWords {
  /** Ids that the network knows. */
  readonly size: number;
  begin(): State;
  /** The state after a word, and the natural logarithms of the probabilities of what comes next (size,). */
  step(state: State, id: number): Promise<{ readonly state: State; readonly logs: Float32Array }>;
}

const GIVEN_TO_TRAIN: readonly string[] = ["sentences", "learning_rate"];
const GIVEN_TO_STEP: readonly string[] = ["word", "k"];

/** Where the runtime's own two files are; null: beside its module. One thread: more need a page isolated from others. */
export function prepareRuntime(folder: string | null): void {
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  if (folder !== null) ort.env.wasm.wasmPaths = folder;
}

/** `train.onnx`. Throws: CannotWork where the graph cannot be loaded, or is not one of a step of training. */
export async function stepperOf(graph: Bytes): Promise<Stepper> {
  const session = await sessionOf(graph, "train.onnx");
  const shapes = session.inputMetadata.filter((each) => !GIVEN_TO_TRAIN.includes(each.name)).map((each) => shapeOf(each, "train.onnx"));
  const names = shapes.map((each) => each.name);
  const parameters = shapes.reduce((sum, each) => sum + each.size, 0);
  return {
    parameters,
    async descend(model: Float32Array, { ids, rows, columns }: Batch, learningRate: number) {
      const fed: Record<string, ort.Tensor> = {
        sentences: new ort.Tensor("int64", ids, [rows, columns]),
        learning_rate: new ort.Tensor("float32", Float32Array.of(learningRate), []),
      };
      let at = 0;
      for (const { name, dims, size } of shapes) {
        fed[name] = new ort.Tensor("float32", model.subarray(at, at + size), dims);
        at += size;
      }
      const found = await session.run(fed);
      const after = new Float32Array(parameters);
      at = 0;
      for (const name of names) {
        const part = floats(found[`${name}_after`]);
        after.set(part, at);
        at += part.length;
      }
      return { model: after, loss: floats(found["loss"])[0] as number };
    },
  };
}

/** `step.onnx`. Throws: CannotWork where the graph cannot be loaded, or is not one of a word and a state. */
export async function nextWordsOf(graph: Bytes): Promise<NextWords> {
  const session = await sessionOf(graph, "step.onnx");
  const said = session.outputMetadata.find((each) => each.name === "log_probabilities");
  const size = said?.isTensor ? said.shape[1] : undefined;
  if (typeof size !== "number") throw new CannotWork("step.onnx is a graph, but not one of a word and a state.");
  const states = session.inputMetadata
    .filter((each) => !GIVEN_TO_STEP.includes(each.name))
    .map((each) => ({ name: each.name, width: each.isTensor ? Number(each.shape[1]) : 0 }));
  const outputs = ["log_probabilities", ...states.map((each) => `${each.name}_after`)];
  const k = new ort.Tensor("int64", BigInt64Array.of(1n), [1]);
  return {
    size,
    begin: () => states.map(({ width }) => new ort.Tensor("float32", new Float32Array(width), [1, width])),
    async step(state: State, id: number) {
      const fed: Record<string, ort.Tensor> = { word: new ort.Tensor("int64", BigInt64Array.of(BigInt(id)), [1]), k };
      states.forEach(({ name }, place) => (fed[name] = state[place] as ort.Tensor));
      const found = await session.run(fed, outputs);
      return {
        logs: floats(found["log_probabilities"]),
        state: states.map(({ name }) => found[`${name}_after`] as ort.Tensor),
      };
    },
  };
}

async function sessionOf(graph: Bytes, name: string): Promise<ort.InferenceSession> {
  try {
    return await ort.InferenceSession.create(graph);
  } catch (thrown) {
    throw new CannotWork(`${name} cannot be loaded: ${saidBy(thrown)}`);
  }
}

function shapeOf(said: ort.InferenceSession.ValueMetadata, graph: string): { name: string; dims: number[]; size: number } {
  const dims = said.isTensor ? said.shape.filter((each) => typeof each === "number") : [];
  if (!said.isTensor || dims.length !== said.shape.length) throw new CannotWork(`${graph} has a parameter without a shape.`);
  return { name: said.name, dims, size: dims.reduce((product, each) => product * each, 1) };
}

function floats(tensor: ort.Tensor | undefined): Float32Array {
  if (!(tensor?.data instanceof Float32Array)) throw new CannotWork("the graph has not the outputs of an export.");
  return tensor.data;
}
