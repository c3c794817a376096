/** Next words of a `step.onnx`, one word at a time: what a keyboard needs between two keys. */

import { CannotWork } from "../core/errors.ts";
import { readOnnx } from "./onnx.ts";
import type { Tensor } from "./operators.ts";
import { Program } from "./program.ts";
import { Room } from "./room.ts";

type Row = Float32Array<ArrayBuffer>;

/** What a network carries from word to word. It is never written to: a state may be gone on from many times. */
export type State = readonly Row[];

/** `step.onnx`: one word read, and what comes next. */
export interface NextWords {
  /** Ids that the network knows. */
  readonly size: number;
  begin(): State;
  /** The state after a word, and the natural logarithms of the probabilities of what comes next (size,). */
  step(state: State, id: number): { readonly state: State; readonly logs: Row };
}

const WORD = "word";
const LOGS = "log_probabilities";
const AFTER = "_after"; // behind the name of a state, as the step gives it back

/** Throws: CannotWork where the graph is damaged, not one of a word and a state, or has an operator that is not here. */
export function nextWordsOf(file: Uint8Array<ArrayBuffer>): NextWords {
  const graph = readOnnx(file);
  const states = [...graph.inputs].filter(([name]) => name !== WORD && name !== "k").map(([name, sizes]) => ({ name, width: sizes[1] ?? 0 }));
  const program = new Program(graph, [LOGS, ...states.map(({ name }) => name + AFTER)], file);
  const room = new Room();
  const begin = (): State => states.map(({ width }) => new Float32Array(width));
  const step: NextWords["step"] = (state, id) => {
    const given = new Map<string, Tensor>([[WORD, { dims: [1], data: Float64Array.of(id) }]]);
    states.forEach(({ name, width }, at) => given.set(name, { dims: [1, width], data: state[at] as Row }));
    const found = program.run(given, room);
    const [logs, ...after] = found.map(({ data }) => data.slice() as Row);
    for (const each of found) room.release(each);
    return { state: after, logs: logs as Row };
  };
  const { length: size } = step(begin(), 0).logs;
  if (size < 2 || states.length === 0) throw new CannotWork("the page's model cannot be used: it is a graph, but not one of a word and a state.");
  return { size, begin, step };
}
