/** A model as `tacit export` wrote it: each file is the one that its manifest names, by SHA-256. */

import { sha256, toHex } from "../core/bytes.ts";
import { CannotWork } from "../core/errors.ts";
import { readOnnx } from "./onnx.ts";
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

const GIVEN_TO_TRAIN: readonly string[] = ["sentences", "learning_rate"];

/**
 * A copy of `step.onnx` with the numbers of another model of the same network: those of a later round, say.
 *
 * model: in the order in which `train` takes its parameters. `step` has them as initializers `parameters.NAME` in
 * float32; nothing else of the copy changes.
 * Throws: CannotWork where the graphs have other parameters, or not so many numbers (a quantized one).
 */
export function withParameters(step: Bytes, train: Bytes, model: Float32Array): Bytes {
  const copy = step.slice();
  const { weights } = readOnnx(copy);
  let at = 0;
  for (const name of readOnnx(train).inputs.keys()) {
    if (GIVEN_TO_TRAIN.includes(name)) continue;
    const place = weights.get(`parameters.${name}`)?.raw;
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
