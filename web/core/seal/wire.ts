/** How messages of secure aggregation become bytes: fields in their order, each behind its length. */

import { joined, utf8 } from "../bytes.ts";
import { Malformed } from "../errors.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const LENGTH_BYTES = 4;

/** A whole number from 0 on, in so many bytes, the lowest first. Throws: RangeError for a number that does not fit. */
export function littleEndian(value: number, size: number): Bytes {
  if (!Number.isSafeInteger(value) || value < 0 || value >= 256 ** size)
    throw new RangeError(`${value} does not fit in ${size} bytes`);
  return Uint8Array.from({ length: size }, (_, place) => Math.floor(value / 256 ** place) % 256);
}

export function behindItsLength(bytes: Uint8Array): Bytes {
  return joined(littleEndian(bytes.length, LENGTH_BYTES), bytes);
}

/** The first bytes of a message. round: the round's name. */
export function header(version: number, kind: number, round: Uint8Array): Bytes {
  return joined(utf8("tacitsum"), littleEndian(version, 2), littleEndian(kind, 2), round);
}

/** The fields of a record. Throws: Malformed unless these bytes are just so many. */
export function fieldsOf(bytes: Uint8Array, count: number): Bytes[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found: Bytes[] = [];
  let at = 0;
  while (at < bytes.length && found.length <= count) {
    const start = at + LENGTH_BYTES;
    const end = start <= bytes.length ? start + view.getUint32(at, true) : Infinity;
    if (end > bytes.length) throw new Malformed("a record ends within a field.");
    found.push(bytes.slice(start, end));
    at = end;
  }
  if (found.length !== count) {
    const many = found.length > count ? `more than ${count}` : `${found.length}`;
    throw new Malformed(`a record has ${many} fields, and not ${count}.`);
  }
  return found;
}

/** A field of so many bytes. Throws: Malformed for one of another length. */
export function fixed(field: Bytes, size: number): Bytes {
  if (field.length !== size) throw new Malformed(`a field has ${field.length} bytes and must have ${size}.`);
  return field;
}

/** A whole number in a field of so many bytes. Throws: Malformed for another length, and for a number beyond 2^53. */
export function numberIn(field: Bytes, size: number): number {
  const value = fixed(field, size).reduceRight((sum, each) => sum * 256 + each, 0);
  if (!Number.isSafeInteger(value))
    throw new Malformed(`a number of a record is ${value}, beyond any that a round has.`);
  return value;
}

/** Values of one size behind each other. Throws: Malformed where the field is no whole number of them. */
export function rowsIn(field: Bytes, size: number): readonly Bytes[] {
  if (field.length % size !== 0)
    throw new Malformed(`${field.length} bytes are no whole number of values of ${size} bytes.`);
  return Array.from({ length: field.length / size }, (_, row) => field.slice(row * size, (row + 1) * size));
}
