/** An ONNX file, walked as protocol buffers: its operations, its weights, what goes in and out. Fields: onnx/onnx.proto. */

import { CannotWork } from "../core/errors.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** Where a message begins and ends in a file. */
export type Span = readonly [number, number];

export interface OnnxNode {
  readonly operator: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: ReadonlyMap<string, OnnxAttribute>;
}

/** Of each kind what there is of it. */
export interface OnnxAttribute {
  readonly numbers: readonly number[];
  readonly text: string;
  readonly graph: OnnxGraph | null;
}

export interface OnnxWeight {
  readonly dims: readonly number[];
  readonly whole: boolean; // int64; else float32
  /** Its numbers, as they lie in the file. */
  readonly raw: Span;
}

export interface OnnxGraph {
  readonly nodes: readonly OnnxNode[];
  readonly weights: ReadonlyMap<string, OnnxWeight>;
  /** Of each input by name, its sizes; 0: any. */
  readonly inputs: ReadonlyMap<string, readonly number[]>;
  readonly outputs: readonly string[];
}

const MODEL = { graph: 7 };
const GRAPH = { node: 1, initializer: 5, input: 11, output: 12 };
const NODE = { input: 1, output: 2, operator: 4, attribute: 5 };
const ATTRIBUTE = { name: 1, number: 3, text: 4, graph: 6, numbers: 8 };
const TENSOR = { dims: 1, type: 2, name: 8, raw: 9 };
const INT64 = 7; // a type of tensors
const VALUE = { name: 1, type: 2 };
const TYPE = { tensor: 1 };
const TENSOR_TYPE = { shape: 2 };
const SHAPE = { dimension: 1 };
const DIMENSION = { value: 1 };

/** Throws: CannotWork where the file is cut off or damaged. */
export function readOnnx(file: Bytes): OnnxGraph {
  const graph = [...fieldsOf(file, [0, file.length], MODEL.graph)][0]?.span ?? [0, 0];
  return graphIn(file, graph);
}

function graphIn(file: Bytes, graph: Span): OnnxGraph {
  const within = (message: Span, field: number): readonly Span[] => [...fieldsOf(file, message, field)].map(({ span }) => span);
  const texts = (message: Span, field: number): readonly string[] => within(message, field).map((span) => new TextDecoder().decode(file.subarray(...span)));
  const text = (message: Span, field: number): string => texts(message, field)[0] ?? "";
  const numbers = (message: Span, field: number): readonly number[] => [...fieldsOf(file, message, field)].map(({ value }) => value);
  const attribute = (message: Span): OnnxAttribute => {
    const inner = within(message, ATTRIBUTE.graph)[0];
    return {
      numbers: [...numbers(message, ATTRIBUTE.number), ...numbers(message, ATTRIBUTE.numbers)],
      text: text(message, ATTRIBUTE.text),
      graph: inner === undefined ? null : graphIn(file, inner),
    };
  };
  const sizesOf = (input: Span): readonly number[] =>
    within(input, VALUE.type)
      .flatMap((type) => within(type, TYPE.tensor))
      .flatMap((tensor) => within(tensor, TENSOR_TYPE.shape))
      .flatMap((shape) => within(shape, SHAPE.dimension))
      .map((dimension) => numbers(dimension, DIMENSION.value)[0] ?? 0);
  return {
    nodes: within(graph, GRAPH.node).map((node) => ({
      operator: text(node, NODE.operator),
      inputs: texts(node, NODE.input),
      outputs: texts(node, NODE.output),
      attributes: new Map(within(node, NODE.attribute).map((each) => [text(each, ATTRIBUTE.name), attribute(each)])),
    })),
    weights: new Map(
      within(graph, GRAPH.initializer).map((tensor) => [
        text(tensor, TENSOR.name),
        { dims: numbers(tensor, TENSOR.dims), whole: numbers(tensor, TENSOR.type)[0] === INT64, raw: within(tensor, TENSOR.raw)[0] ?? [0, 0] },
      ]),
    ),
    inputs: new Map(within(graph, GRAPH.input).map((input) => [text(input, VALUE.name), sizesOf(input)])),
    outputs: within(graph, GRAPH.output).map((output) => text(output, VALUE.name)),
  };
}

interface Field {
  readonly value: number; // of a whole number
  readonly span: Span; // of a message, a text or bytes
}

/** Each occurrence of one field of a message; any other is stepped over. */
function* fieldsOf(file: Bytes, [begin, end]: Span, number: number): Generator<Field> {
  for (let at = begin; at < end; ) {
    const [tag, start] = varint(file, at, end);
    const wire = tag & 7;
    const [value, after] = wire === 0 || wire === 2 ? varint(file, start, end) : [0, start];
    at = wire === 2 ? after + value : wire === 1 ? after + 8 : wire === 5 ? after + 4 : after;
    if (wire === 3 || wire === 4 || wire > 5 || at < after) throw damaged("a graph is damaged");
    if (at > end) throw damaged("a graph is cut off");
    if (Math.floor(tag / 8) === number) yield { value, span: [after, at] };
  }
}

const LONGEST = 10; // bytes of a whole number: of a negative one all of them

/** A whole number, and what stands behind it. */
function varint(file: Bytes, begin: number, end: number): readonly [number, number] {
  let [value, left] = [0, 0]; // left: what it has less than -1, where it is negative
  for (let at = begin, scale = 1; at < end && at < begin + LONGEST; at++, scale *= 128) {
    const byte = file[at] as number;
    value += (byte & 127) * scale;
    left += (127 - (byte & 127)) * scale;
    if (byte < 128) return at < begin + LONGEST - 1 ? [value, at + 1] : [-1 - (left - 126 * scale), at + 1];
  }
  throw damaged("a graph is damaged");
}

function damaged(what: string): CannotWork {
  return new CannotWork(`the page's model cannot be used: ${what}.`);
}
