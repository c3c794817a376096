/** The step of training of a `tacit export`, in ONNX Runtime's WebAssembly, on one thread. */

import * as ort from "onnxruntime-web/wasm";

import { CannotWork, saidBy } from "../core/errors.ts";
import type { Batch, Stepper } from "./trainer.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const GIVEN_TO_TRAIN: readonly string[] = ["sentences", "learning_rate"];

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
      at = 0;
      for (const name of names) {
        const part = floats(found[`${name}_after`]);
        model.set(part, at);
        at += part.length;
      }
      return floats(found["loss"])[0] as number;
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
