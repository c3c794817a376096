/** The step of training of a `tacit export`, `train.onnx`: forward, backward and update are its operations. */

import { CannotWork } from "../core/errors.ts";
import { readOnnx } from "./onnx.ts";
import type { Tensor } from "./operators.ts";
import { PLAIN } from "./products.ts";
import { Program } from "./program.ts";
import { Room } from "./room.ts";
import type { Batch, Stepper } from "./trainer.ts";

const SENTENCES = "sentences";
const RATE = "learning_rate";
const LOSS = "loss";
const AFTER = "_after"; // behind the name of a parameter, as the step gives it back

/** Throws: CannotWork where the graph cannot be read, is not one of a step of training, or has an operator that is not here. */
export function stepperOf(file: Uint8Array<ArrayBuffer>, products = PLAIN): Stepper {
  const graph = readOnnx(file);
  const shapes = [...graph.inputs].filter(([name]) => name !== SENTENCES && name !== RATE);
  const sizes = shapes.map(([, dims]) => dims.reduce((product, each) => product * each, 1));
  const parameters = sizes.reduce((sum, each) => sum + each, 0);
  if (!graph.inputs.has(SENTENCES) || !sizes.every((each) => each > 0)) throw new CannotWork("train.onnx is a graph, but not one of a step of training.");
  const program = new Program(graph, [LOSS, ...shapes.map(([name]) => name + AFTER)], file);
  const room = new Room(products);
  return {
    parameters,
    descend(model: Float32Array<ArrayBuffer>, { ids, rows, columns }: Batch, learningRate: number) {
      const given = new Map<string, Tensor>([
        [SENTENCES, { dims: [rows, columns], data: ids }],
        [RATE, { dims: [], data: Float32Array.of(learningRate) }],
      ]);
      let at = 0;
      shapes.forEach(([name, dims], place) => given.set(name, { dims, data: model.subarray(at, (at += sizes[place] as number)) }));
      const found = program.run(given, room);
      const loss = found[0]?.data[0] as number;
      at = 0;
      found.slice(1).forEach(({ data }, place) => {
        model.set(data, at);
        at += sizes[place] as number;
      });
      for (const each of found) room.release(each);
      return loss;
    },
  };
}
