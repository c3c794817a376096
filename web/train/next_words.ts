/**
 * Next words of a `step.onnx`, one word at a time: what a keyboard needs between two keys, without a runtime to load.
 *
 * The operators are those that tacit's recurrent cells are written in (docs/extending.md), for a row of float32 numbers.
 * ONNX Runtime is the slow, obvious reference: the tests hold every log probability against it.
 */

import { CannotWork } from "../core/errors.ts";
import { readOnnx, type OnnxGraph, type OnnxNode, type OnnxWeight } from "./onnx.ts";

type Bytes = Uint8Array<ArrayBuffer>;
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
export function nextWordsOf(file: Bytes): NextWords {
  const graph = readOnnx(file);
  const states = [...graph.inputs].filter(([name]) => name !== WORD && name !== "k").map(([name, sizes]) => ({ name, width: sizes[1] ?? 0 }));
  const wanted = [LOGS, ...states.map(({ name }) => name + AFTER)];
  const rows = new Map<string, Row>(states.map(({ name, width }) => [name, new Float32Array(width)]));
  const place = { word: 0 };
  const operations = neededFor(wanted, graph).map((node) => operation(node, graph, rows, file, place));
  if (!wanted.every((name) => rows.has(name))) throw wrong("it is a graph, but not one of a word and a state");
  const row = (name: string): Row => rows.get(name) as Row;
  return {
    size: row(LOGS).length,
    begin: () => states.map(({ width }) => new Float32Array(width)),
    step(state, id) {
      place.word = id;
      states.forEach(({ name }, at) => row(name).set(state[at] as Row));
      for (const each of operations) each();
      return { state: states.map(({ name }) => row(name + AFTER).slice()), logs: row(LOGS).slice() };
    },
  };
}

/** The operations, in their order, without which these values would not be there. */
function neededFor(wanted: readonly string[], { nodes }: OnnxGraph): readonly OnnxNode[] {
  const needed = new Set(wanted);
  return nodes
    .toReversed()
    .filter(({ inputs, outputs }) => {
      if (!outputs.some((each) => needed.has(each))) return false;
      for (const each of inputs) needed.add(each);
      return true;
    })
    .toReversed();
}

/** What an operator does: it writes the row of each of its outputs. `rows` has those of all inputs, and gets these. */
function operation(node: OnnxNode, graph: OnnxGraph, rows: Map<string, Row>, file: Bytes, place: { readonly word: number }): () => void {
  const { operator, inputs, outputs, numbers } = node;
  const weight = (at: number): { readonly dims: readonly number[]; readonly values: Row } => {
    const found = graph.weights.get(inputs[at] ?? "");
    if (found === undefined) throw wrong(`its ${operator} has no weights`);
    return { dims: found.dims, values: floatsOf(file, found) };
  };
  const row = (at: number): Row => {
    const found = rows.get(inputs[at] ?? "");
    if (found !== undefined) return found;
    const made = weight(at).values;
    rows.set(inputs[at] ?? "", made);
    return made;
  };
  const made = (width: number, at = 0): Row => {
    const found = new Float32Array(width);
    rows.set(outputs[at] ?? "", found);
    return found;
  };
  const ofEach = (does: (value: number) => number): (() => void) => {
    const from = row(0);
    const to = made(from.length);
    return () => {
      for (let at = 0; at < to.length; at++) to[at] = does(from[at] as number);
    };
  };
  const ofPairs = (does: (left: number, right: number) => number): (() => void) => {
    const [left, right] = [row(0), row(1)];
    const to = made(Math.max(left.length, right.length));
    const [one, other] = [left.length === 1 ? 0 : 1, right.length === 1 ? 0 : 1]; // a number is added to each
    if (left.length !== right.length && one * other !== 0) throw wrong(`its ${operator} takes rows of ${left.length} and of ${right.length} numbers`);
    return () => {
      for (let at = 0; at < to.length; at++) to[at] = does(left[one * at] as number, right[other * at] as number);
    };
  };
  switch (operator) {
    case "Gather": {
      const { dims, values } = weight(0);
      const to = made(dims[1] ?? 0);
      if (inputs[1] !== WORD || to.length === 0) break;
      return () => to.set(values.subarray(to.length * place.word, to.length * (place.word + 1)));
    }
    case "MatMul":
    case "Gemm": {
      const from = row(0);
      const { dims, values } = weight(1);
      const turned = numbers.get("transB") === 1;
      const [takes, width] = turned ? [dims[1], dims[0]] : [dims[0], dims[1]];
      if (takes !== from.length || width === undefined || (operator === "Gemm") !== turned) break;
      const to = made(width);
      const bias = inputs[2] === undefined ? new Float32Array(width) : row(2);
      return turned ? () => byRows(to, from, values, bias) : () => byColumns(to, from, values, bias);
    }
    case "Split": {
      const from = row(0);
      const width = from.length / outputs.length;
      const parts = outputs.map((_, at) => made(width, at));
      return () => parts.forEach((part, at) => part.set(from.subarray(at * width, (at + 1) * width)));
    }
    case "Concat": {
      const parts = inputs.map((_, at) => row(at));
      const to = made(parts.reduce((sum, each) => sum + each.length, 0));
      return () => void parts.reduce((at, part) => (to.set(part, at), at + part.length), 0);
    }
    case "LogSoftmax": {
      const from = row(0);
      const to = made(from.length);
      return () => logSoftmax(to, from);
    }
    case "Identity":
      return ofEach((value) => value);
    case "Sigmoid":
      return ofEach((value) => 1 / (1 + Math.exp(-value)));
    case "Tanh":
      return ofEach(Math.tanh);
    case "Add":
      return ofPairs((left, right) => left + right);
    case "Sub":
      return ofPairs((left, right) => left - right);
    case "Mul":
      return ofPairs((left, right) => left * right);
  }
  throw wrong(`it has the operator ${operator} in a form that this page does not know; export the model without --quantize`);
}

/** to = from @ matrix (K, M) + bias. Four rows at a time: each number of `to` is loaded and stored a quarter as often. */
function byColumns(to: Row, from: Row, matrix: Row, bias: Row): void {
  const width = to.length;
  to.set(bias);
  let key = 0;
  for (; key + 4 <= from.length; key += 4) {
    const [a, b, c, d] = [from[key] as number, from[key + 1] as number, from[key + 2] as number, from[key + 3] as number];
    let one = key * width;
    for (let at = 0; at < width; at++, one++) {
      to[at] =
        (to[at] as number) +
        a * (matrix[one] as number) +
        b * (matrix[one + width] as number) +
        c * (matrix[one + 2 * width] as number) +
        d * (matrix[one + 3 * width] as number);
    }
  }
  for (; key < from.length; key++) {
    const factor = from[key] as number;
    for (let at = 0; at < width; at++) to[at] = (to[at] as number) + factor * (matrix[key * width + at] as number);
  }
}

/** to = from @ matrix.T + bias, with matrix (M, K). */
function byRows(to: Row, from: Row, matrix: Row, bias: Row): void {
  const takes = from.length;
  for (let at = 0; at < to.length; at++) {
    let sum = bias[at] as number;
    for (let key = 0; key < takes; key++) sum += (from[key] as number) * (matrix[at * takes + key] as number);
    to[at] = sum;
  }
}

function logSoftmax(to: Row, from: Row): void {
  let most = -Infinity;
  for (let at = 0; at < from.length; at++) most = Math.max(most, from[at] as number);
  let sum = 0;
  for (let at = 0; at < from.length; at++) sum += Math.exp((from[at] as number) - most);
  const whole = most + Math.log(sum);
  for (let at = 0; at < from.length; at++) to[at] = (from[at] as number) - whole;
}

/** A copy: in a file they begin anywhere. */
function floatsOf(file: Bytes, { dims, raw }: OnnxWeight): Row {
  const values = new Float32Array(file.slice(...raw).buffer);
  if (values.length !== dims.reduce((product, each) => product * each, 1)) throw wrong("a weight has not as many numbers as it says");
  return values;
}

function wrong(what: string): CannotWork {
  return new CannotWork(`step.onnx cannot be used: ${what}.`);
}
