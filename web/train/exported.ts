/** A model as `tacit export` wrote it: each file is the one that its manifest names, by SHA-256. */

import { sha256, toHex } from "../core/bytes.ts";
import { CannotWork } from "../core/errors.ts";
import { readVocabulary, type Vocabulary } from "./vocabulary.ts";

type Bytes = Uint8Array<ArrayBuffer>;

export interface Exported {
  readonly vocabulary: Vocabulary;
  /** The network's kind and settings, as recipes have them. */
  readonly network: Readonly<Record<string, unknown>>;
  readonly parameters: number;
  /** What is known of the privacy of the text that the model was made from, in a sentence. */
  readonly privacy: string;
  /** `step.onnx` and `train.onnx`; null where the export has no step of training. */
  readonly step: Bytes;
  readonly train: Bytes | null;
}

/**
 * The export of which `read` gives the files by name.
 *
 * Throws: CannotWork where a file is missing, or is not the one that was exported.
 */
export async function loadExported(read: (name: string) => Promise<Bytes>): Promise<Exported> {
  const manifest = parsed(new TextDecoder().decode(await read("manifest.json")));
  if (manifest["schema"] !== "tacit.export" || manifest["version"] !== 1) throw wrong("its manifest is of no export that this page reads");
  const files = record(manifest["files"], "files");
  const checked = async (name: string): Promise<Bytes> => {
    const said = record(files[name], name);
    const bytes = await read(name);
    if (bytes.length !== said["bytes"] || toHex(await sha256(bytes)) !== said["sha256"]) {
      throw wrong(`${name} is not the file that was exported`);
    }
    return bytes;
  };
  const vocabulary = await readVocabulary(new TextDecoder("utf-8", { fatal: true }).decode(await checked("vocabulary.json")));
  if (record(manifest["vocabulary"], "vocabulary")["sha256"] !== vocabulary.sha256) throw wrong("its words are of another export");
  const parameters = manifest["parameters"];
  if (typeof parameters !== "number") throw wrong("it does not say how many numbers the model has");
  return {
    vocabulary,
    network: record(manifest["network"], "network"),
    parameters,
    privacy: String(record(manifest["privacy"], "privacy")["says"]),
    step: await checked("step.onnx"),
    train: "train.onnx" in files ? await checked("train.onnx") : null,
  };
}

// Numbers of fields in onnx/onnx.proto.
const MODEL_GRAPH = 7;
const GRAPH_INITIALIZER = 5;
const GRAPH_INPUT = 11;
const INPUT_NAME = 1;
const TENSOR_NAME = 8;
const TENSOR_RAW_DATA = 9;
const GIVEN_TO_TRAIN: readonly string[] = ["sentences", "learning_rate"];

/**
 * A copy of `step.onnx` with the numbers of another model of the same network: those of a later round, say.
 *
 * model: in the order in which `train` takes its parameters. `step` has them as initializers `parameters.NAME` in
 * float32; the files are walked as protocol buffers, and nothing else of the copy changes.
 * Throws: CannotWork where the graphs have other parameters, or not so many numbers (a quantized one).
 */
export function withParameters(step: Bytes, train: Bytes, model: Float32Array): Bytes {
  const copy = step.slice();
  const places = new Map<string, Span>();
  for (const graph of messages(copy, [0, copy.length], MODEL_GRAPH)) {
    for (const tensor of messages(copy, graph, GRAPH_INITIALIZER)) {
      const raw = [...messages(copy, tensor, TENSOR_RAW_DATA)][0];
      if (raw !== undefined) places.set(named(copy, tensor, TENSOR_NAME), raw);
    }
  }
  let at = 0;
  for (const name of parametersOf(train)) {
    const place = places.get(`parameters.${name}`);
    if (place === undefined) throw wrong(`step.onnx has no numbers of the parameter '${name}'`);
    const size = (place[1] - place[0]) / 4;
    const part = model.subarray(at, at + size);
    if (part.length !== size) break;
    copy.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), place[0]);
    at += size;
  }
  if (at !== model.length) throw wrong(`its network has not ${model.length} numbers`);
  return copy;
}

/** The names of the parameters, in the order of the vector of all. */
function parametersOf(train: Bytes): readonly string[] {
  const graphs = [...messages(train, [0, train.length], MODEL_GRAPH)];
  const inputs = graphs.flatMap((graph) => [...messages(train, graph, GRAPH_INPUT)]);
  return inputs.map((input) => named(train, input, INPUT_NAME)).filter((name) => !GIVEN_TO_TRAIN.includes(name));
}

function named(content: Bytes, message: Span, number: number): string {
  const [place] = messages(content, message, number);
  return place === undefined ? "" : new TextDecoder().decode(content.subarray(...place));
}

type Span = readonly [number, number]; // where a message begins and ends

/** The messages of one field; any other field is stepped over. */
function* messages(content: Bytes, [begin, end]: Span, number: number): Generator<Span> {
  let at = begin;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; at < end && scale <= 2 ** 49; scale *= 128) {
      const byte = content[at++] as number;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    throw wrong("a graph is damaged");
  };
  while (at < end) {
    const tag = varint();
    const wire = tag & 7;
    if (wire === 0) varint();
    else if (wire === 1) at += 8;
    else if (wire === 5) at += 4;
    else if (wire === 2) {
      const length = varint();
      if (at + length > end) throw wrong("a graph is cut off");
      if (Math.floor(tag / 8) === number) yield [at, at + length];
      at += length;
    } else throw wrong("a graph is damaged");
  }
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return record(JSON.parse(text), "manifest.json");
  } catch {
    throw wrong("its manifest is no JSON");
  }
}

function record(value: unknown, name: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(`it says nothing of '${name}'`);
  return value as Readonly<Record<string, unknown>>;
}

function wrong(what: string): CannotWork {
  return new CannotWork(`the exported model cannot be used: ${what}.`);
}
