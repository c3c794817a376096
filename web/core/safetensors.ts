/** Files of the safetensors format: 8 bytes with the length of a header in JSON, the header, the numbers. */

import { joined, utf8 } from "./bytes.ts";
import { Malformed, Refused } from "./errors.ts";
import { parseJson, textOf, type Json } from "./json.ts";

const HEADER_BYTES = 512; // filled up with spaces: as long whatever it says
const MOST_HEADER = 100_000_000; // the format's own bound
const SIZES = { F32: 4, F64: 8, U32: 4 } as const;

export type Dtype = keyof typeof SIZES;
type Numbers = { readonly F32: Float32Array; readonly F64: Float64Array; readonly U32: Uint32Array };

/**
 * The one tensor (length,) of a file, of this name and type.
 *
 * Throws: Refused where the file has another tensor, another size, or bytes that belong to none.
 */
export function readTensor<D extends Dtype>(file: Uint8Array, name: string, dtype: D, length: number): Numbers[D] {
  const wrong = (what: string): Refused => new Refused(`the file with '${name}' cannot be read: ${what}.`);
  if (file.length < 8) throw wrong("it has no header");
  const header = new DataView(file.buffer, file.byteOffset, 8).getBigUint64(0, true);
  if (header > BigInt(Math.min(MOST_HEADER, file.length - 8))) throw wrong("its header is longer than it");
  const start = 8 + Number(header);
  let said: Json;
  try {
    said = parseJson(textOf(file.subarray(8, start)));
  } catch (thrown) {
    throw thrown instanceof Malformed ? wrong(thrown.message) : thrown;
  }
  if (!(said instanceof Map)) throw wrong("its header is no object");
  const names = [...said.keys()].filter((each) => each !== "__metadata__");
  const tensor: Json | undefined = said.get(name);
  if (names.length !== 1 || !(tensor instanceof Map))
    throw wrong(`it has ${names.length} tensors, and not that one alone`);
  const shape = tensor.get("shape");
  const offsets = tensor.get("data_offsets");
  const bytes = length * SIZES[dtype];
  if (tensor.get("dtype") !== dtype) throw wrong(`its numbers are not ${dtype}`);
  if (!Array.isArray(shape) || shape.length !== 1 || shape[0] !== BigInt(length))
    throw wrong(`its shape is not (${length},)`);
  const whole = Array.isArray(offsets) && offsets.length === 2 && offsets[0] === 0n && offsets[1] === BigInt(bytes);
  if (!whole || file.length - start !== bytes) throw wrong(`its numbers do not take ${bytes} bytes`);
  return littleEndian(file.slice(start).buffer, dtype);
}

function littleEndian<D extends Dtype>(buffer: ArrayBuffer, dtype: D): Numbers[D] {
  // Typed arrays have the machine's order of bytes; every machine with WebAssembly is little-endian.
  const views: { readonly [K in Dtype]: (bytes: ArrayBuffer) => Numbers[K] } = {
    F32: (bytes) => new Float32Array(bytes),
    F64: (bytes) => new Float64Array(bytes),
    U32: (bytes) => new Uint32Array(bytes),
  };
  return views[dtype](buffer);
}

/** A file of one tensor (length,) with metadata, whose header has 512 bytes whatever it says. */
export function tensorFile(
  name: string,
  numbers: Float32Array | Uint32Array,
  metadata: Readonly<Record<string, string>>,
): Uint8Array<ArrayBuffer> {
  const dtype = numbers instanceof Float32Array ? "F32" : "U32";
  const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
  const said = { __metadata__: metadata, [name]: { dtype, shape: [numbers.length], data_offsets: [0, bytes.length] } };
  const header = utf8(JSON.stringify(said).padEnd(HEADER_BYTES));
  if (header.length !== HEADER_BYTES)
    throw new RangeError(`a header of ${header.length} bytes would tell reports apart`);
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(HEADER_BYTES), true);
  return joined(length, header, bytes);
}
