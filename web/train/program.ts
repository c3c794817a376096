/** An ONNX graph that runs: its operations in their order, each with the values of those before it. */

import { CannotWork } from "../core/errors.ts";
import type { OnnxGraph, OnnxNode, OnnxWeight } from "./onnx.ts";
import { OPERATORS, type Numbers, type Tensor } from "./operators.ts";
import type { Room } from "./room.ts";

type Bytes = Uint8Array<ArrayBuffer>;
type Values = ReadonlyMap<string, Tensor>;

interface Step {
  readonly node: OnnxNode;
  /** What it takes: its inputs, then what its body uses of the values around it. */
  readonly takes: readonly string[];
  /** Values that are of no more use behind it. */
  readonly last: readonly string[];
  readonly body: Program | null;
}

export class Program {
  /** What it uses of the values around it, where it is a body. */
  readonly around: readonly string[];
  private readonly inputs: readonly string[];
  private readonly outputs: readonly string[];
  private readonly weights: Values;
  private readonly steps: readonly Step[];

  /**
   * outputs: those that are asked for; what they do not need is not computed. file: where the weights lie.
   *
   * Throws: CannotWork for an operator that is not here, and for outputs that the graph does not have.
   */
  constructor(graph: OnnxGraph, outputs: readonly string[], file: Bytes) {
    this.inputs = [...graph.inputs.keys()];
    this.outputs = outputs;
    this.steps = stepsOf(graph.nodes, outputs, file);
    const used = new Set([...outputs, ...this.steps.flatMap(({ takes }) => takes)]);
    const weights = [...graph.weights].filter(([name]) => used.has(name));
    this.weights = new Map(weights.map(([name, weight]) => [name, { dims: weight.dims, data: numbersOf(file, weight) }]));
    const here = new Set([...this.inputs, ...graph.weights.keys(), ...this.steps.flatMap(({ node }) => node.outputs)]);
    this.around = [...used].filter((each) => !here.has(each));
  }

  /** The outputs, which are the caller's to release. Throws: CannotWork where the sizes of what is given do not fit. */
  run(given: Values, room: Room): readonly Tensor[] {
    const values = new Map([...this.weights, ...given]);
    for (const { node, takes, last, body } of this.steps) {
      const taken = takes.map((each) => valueOf(values, each));
      const made =
        body === null
          ? (OPERATORS[node.operator] as (typeof OPERATORS)[string])(taken, node.attributes, room, node.outputs.length)
          : body.scanned(node, taken, room);
      made.forEach((tensor, place) => {
        room.hold(tensor);
        values.set(node.outputs[place] as string, tensor);
      });
      for (const each of last) {
        room.release(valueOf(values, each));
        values.delete(each);
      }
    }
    return this.outputs.map((each) => valueOf(values, each));
  }

  /** Of a body: its states after all rows of what is scanned, and what it gave for each row. taken: as a step takes it. */
  private scanned({ inputs, attributes }: OnnxNode, taken: readonly Tensor[], room: Room): readonly Tensor[] {
    const rows = attributes.get("num_scan_inputs")?.numbers[0] ?? 0;
    const count = inputs.length - rows; // of states
    const [scans, around] = [taken.slice(count, inputs.length), taken.slice(inputs.length)];
    const length = scans[0]?.dims[0] ?? 0;
    const backward = (name: string, place: number): boolean => attributes.get(name)?.numbers[place] === 1;
    let states = taken.slice(0, count);
    let stacks: readonly Tensor[] = [];
    for (let time = 0; time < length; time++) {
      const given = scans.map((scan, place) => rowOf(scan, backward("scan_input_directions", place) ? length - 1 - time : time));
      const names = [...this.inputs, ...this.around];
      const found = this.run(new Map([...states, ...given, ...around].map((each, place) => [names[place] as string, each])), room);
      const each = found.slice(count);
      if (time === 0) stacks = each.map(({ dims, data }) => ({ dims: [length, ...dims], data: room.floats(length * data.length) }));
      else states.forEach((before) => room.release(before));
      states = found.slice(0, count);
      each.forEach((row, place) => {
        rowOf(stacks[place] as Tensor, backward("scan_output_directions", place) ? length - 1 - time : time).data.set(row.data);
        room.release(row);
      });
    }
    states.forEach((last) => room.leave(last));
    return [...states, ...stacks];
  }
}

/** The operations, in their order, without which these outputs would not be there. */
function stepsOf(nodes: readonly OnnxNode[], outputs: readonly string[], file: Bytes): readonly Step[] {
  const made = new Set(nodes.flatMap((node) => node.outputs));
  const needed = new Set(outputs);
  const steps: Step[] = [];
  for (const node of nodes.toReversed()) {
    if (!node.outputs.some((each) => needed.has(each))) continue;
    const inner = node.attributes.get("body")?.graph;
    const body = node.operator === "Scan" && inner ? new Program(inner, inner.outputs, file) : null;
    if (body === null && !Object.hasOwn(OPERATORS, node.operator)) throw wrong(`it has the operator ${node.operator}, which this page does not know; export the model without --quantize`);
    const takes = [...node.inputs, ...(body?.around ?? [])];
    const last = [...new Set([...takes, ...node.outputs])].filter((each) => made.has(each) && !needed.has(each));
    takes.forEach((each) => needed.add(each));
    steps.push({ node, takes, last, body });
  }
  return steps.reverse();
}

function rowOf({ dims, data }: Tensor, place: number): Tensor {
  const rest = dims.slice(1);
  const size = rest.reduce((product, each) => product * each, 1);
  return { dims: rest, data: data.subarray(place * size, (place + 1) * size) as Numbers };
}

function valueOf(values: Values, name: string): Tensor {
  const found = values.get(name);
  if (found === undefined) throw wrong(`it does not compute '${name}'`);
  return found;
}

/** A copy: in a file they begin anywhere. */
function numbersOf(file: Bytes, { dims, whole, raw }: OnnxWeight): Numbers {
  const bytes = file.slice(...raw);
  const size = whole ? 8 : 4;
  if (bytes.length !== size * dims.reduce((product, each) => product * each, 1)) throw wrong("a weight has not as many numbers as it says");
  return whole ? Float64Array.from(new BigInt64Array(bytes.buffer), Number) : new Float32Array(bytes.buffer);
}

function wrong(what: string): CannotWork {
  return new CannotWork(`the page's model cannot be used: ${what}.`);
}
