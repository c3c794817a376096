/**
 * The operators that tacit writes its graphs in (onnx.ai/onnx/operators, opset 18), as far as these use them.
 *
 * Each takes and gives tensors of float32 numbers, or of whole numbers and truths, which are Float64Arrays here. What
 * it gives may be a view of what it takes. ONNX Runtime is the reference: the tests hold whole graphs against it.
 */

import { CannotWork } from "../core/errors.ts";
import type { OnnxAttribute } from "./onnx.ts";
import type { Room } from "./room.ts";

export type Numbers = Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer>;

export interface Tensor {
  readonly dims: readonly number[];
  readonly data: Numbers;
}

type Attributes = ReadonlyMap<string, OnnxAttribute>;
type Operator = (given: readonly Tensor[], attributes: Attributes, room: Room, outputs: number) => readonly Tensor[];

const sizeOf = (dims: readonly number[]): number => dims.reduce((product, each) => product * each, 1);
const whole = (dims: readonly number[], data: Numbers): readonly Tensor[] => [{ dims, data }];
const numbersOf = (tensor: Tensor | undefined): readonly number[] => Array.from(tensor?.data ?? []);
const numberOf = (attributes: Attributes, name: string, otherwise: number): number => attributes.get(name)?.numbers[0] ?? otherwise;
const isWhole = ({ data }: Tensor): boolean => data instanceof Float64Array;

function first(given: readonly Tensor[]): Tensor {
  return at(given, 0);
}

function at(given: readonly Tensor[], place: number): Tensor {
  const found = given[place];
  if (found === undefined) throw wrong("an operation lacks an input");
  return found;
}

/** An axis counted from the front. */
function axisOf(attributes: Attributes, rank: number, otherwise: number): number {
  const axis = numberOf(attributes, "axis", otherwise);
  return axis < 0 ? axis + rank : axis;
}

/** A tensor as (outer, size, inner) about one axis. */
function about(dims: readonly number[], axis: number): readonly [number, number, number] {
  return [sizeOf(dims.slice(0, axis)), dims[axis] ?? 1, sizeOf(dims.slice(axis + 1))];
}

function ofEach(does: (value: number) => number): Operator {
  return (given, _, room) => {
    const { dims, data } = first(given);
    const to = isWhole(first(given)) ? room.wholes(data.length) : room.floats(data.length);
    for (let place = 0; place < to.length; place++) to[place] = does(data[place] as number);
    return whole(dims, to);
  };
}

/** What is done with each pair: of `one` numbers and `other` numbers, each again and again. */
type Pairs = (to: Numbers, left: Numbers, one: number, right: Numbers, other: number) => void;

// Each a loop of its own: one loop that calls what it is given was slower, and what it left behind had to be collected.
const added: Pairs = (to, left, one, right, other) => {
  for (let place = 0, i = 0, j = 0; place < to.length; place++) {
    to[place] = (left[i] as number) + (right[j] as number);
    if (++i === one) i = 0;
    if (++j === other) j = 0;
  }
};
const subtracted: Pairs = (to, left, one, right, other) => {
  for (let place = 0, i = 0, j = 0; place < to.length; place++) {
    to[place] = (left[i] as number) - (right[j] as number);
    if (++i === one) i = 0;
    if (++j === other) j = 0;
  }
};
const times: Pairs = (to, left, one, right, other) => {
  for (let place = 0, i = 0, j = 0; place < to.length; place++) {
    to[place] = (left[i] as number) * (right[j] as number);
    if (++i === one) i = 0;
    if (++j === other) j = 0;
  }
};
const done = (does: (left: number, right: number) => number): Pairs => (to, left, one, right, other) => {
  for (let place = 0; place < to.length; place++) to[place] = does(left[place % one] as number, right[place % other] as number);
};

function ofPairs(pairs: Pairs, truth = false): Operator {
  return (given, _, room) => {
    const [left, right] = [at(given, 0), at(given, 1)];
    const dims = broadcast(left.dims, right.dims);
    const size = sizeOf(dims);
    const to = truth || (isWhole(left) && isWhole(right)) ? room.wholes(size) : room.floats(size);
    const [one, other] = [repeated(left, dims), repeated(right, dims)];
    pairs(to, one, one.length, other, other.length);
    return whole(dims, to);
  };
}

/** The numbers that are repeated, one after another, to these sizes: its own, or all of them. */
function repeated(tensor: Tensor, to: readonly number[]): Numbers {
  if (repeats(tensor, to) !== null) return tensor.data;
  const place = spread(tensor, to);
  return Float32Array.from({ length: sizeOf(to) }, (_, each) => tensor.data[place(each)] as number);
}

function broadcast(left: readonly number[], right: readonly number[]): readonly number[] {
  const rank = Math.max(left.length, right.length);
  return Array.from({ length: rank }, (_, place) => {
    const one = left[place - rank + left.length] ?? 1;
    const other = right[place - rank + right.length] ?? 1;
    if (one !== other && one !== 1 && other !== 1) throw wrong(`sizes [${left}] and [${right}] do not fit`);
    return one === 1 ? other : one;
  });
}

/** After how many numbers a tensor begins anew where it is repeated to these sizes; null where it is not so simple. */
function repeats({ dims, data }: Tensor, to: readonly number[]): number | null {
  const lead = dims.findIndex((each) => each !== 1);
  const row = lead < 0 ? [] : dims.slice(lead);
  return row.every((each, place) => each === to[to.length - row.length + place]) ? data.length : null;
}

/** Where the numbers of a tensor are that is repeated along the axes that it lacks. */
function spread({ dims }: Tensor, to: readonly number[]): (place: number) => number {
  const steps: number[] = [];
  let step = 1;
  for (let axis = to.length - 1, own = dims.length - 1; axis >= 0; axis--, own--) {
    const size = dims[own] ?? 1;
    steps[axis] = size === 1 ? 0 : step;
    step *= size;
  }
  return (place) => {
    let [left, found] = [place, 0];
    for (let axis = to.length - 1; axis >= 0; axis--) {
      const size = to[axis] as number;
      found += (left % size) * (steps[axis] as number);
      left = Math.floor(left / size);
    }
    return found;
  };
}

/** Sums, or the largest numbers, along one axis or all. */
function reduced(sums: boolean): Operator {
  return (given, attributes, room) => {
    const { dims, data } = first(given);
    const keep = numberOf(attributes, "keepdims", 1) === 1;
    const axes = given[1] === undefined ? dims.map((_, axis) => axis) : numbersOf(given[1]).map((axis) => (axis < 0 ? axis + dims.length : axis));
    if (axes.length > 1 && axes.length !== dims.length) throw wrong("several axes are reduced, and not all");
    const [outer, size, inner] = axes.length === dims.length ? [1, data.length, 1] : about(dims, axes[0] as number);
    const to = isWhole(first(given)) ? room.wholes(outer * inner) : room.floats(outer * inner);
    to.fill(sums ? 0 : -Infinity);
    for (let o = 0; o < outer; o++) {
      const begin = o * size * inner;
      if (inner === 1) to[o] = sums ? sumOf(data, begin, begin + size) : mostOf(data, begin, begin + size);
      else for (let from = begin; from < begin + size * inner; from += inner) gathered(to, o * inner, data, from, inner, sums);
    }
    return whole(keep ? dims.map((each, axis) => (axes.includes(axis) ? 1 : each)) : dims.filter((_, axis) => !axes.includes(axis)), to);
  };
}

function sumOf(data: Numbers, begin: number, end: number): number {
  let sum = 0;
  for (let place = begin; place < end; place++) sum += data[place] as number;
  return sum;
}

function mostOf(data: Numbers, begin: number, end: number): number {
  let most = -Infinity;
  for (let place = begin; place < end; place++) most = Math.max(most, data[place] as number);
  return most;
}

function gathered(to: Numbers, at: number, data: Numbers, from: number, count: number, sums: boolean): void {
  if (sums) for (let each = 0; each < count; each++) to[at + each] = (to[at + each] as number) + (data[from + each] as number);
  else for (let each = 0; each < count; each++) to[at + each] = Math.max(to[at + each] as number, data[from + each] as number);
}

/** Rows of the last axis to the logarithms of their shares, or to the shares. */
function softmax(logarithms: boolean): Operator {
  return (given, attributes, room) => {
    const { dims, data } = first(given);
    const width = dims.at(-1) ?? 1;
    if (axisOf(attributes, dims.length, -1) !== dims.length - 1) throw wrong("shares are of another axis than the last");
    const to = room.floats(data.length);
    for (let begin = 0; begin < data.length; begin += width) {
      const end = begin + width;
      const most = mostOf(data, begin, end);
      let sum = 0;
      if (logarithms) {
        for (let place = begin; place < end; place++) sum += Math.exp((data[place] as number) - most);
        const all = most + Math.log(sum);
        for (let place = begin; place < end; place++) to[place] = (data[place] as number) - all;
      } else {
        for (let place = begin; place < end; place++) sum += to[place] = Math.exp((data[place] as number) - most);
        for (let place = begin; place < end; place++) to[place] = (to[place] as number) / sum;
      }
    }
    return whole(dims, to);
  };
}

/** left (M, K) by right (K, N), either turned, plus what is repeated to (M, N). */
function multiplied(given: readonly Tensor[], attributes: Attributes, room: Room): readonly Tensor[] {
  const [left, right, more] = [at(given, 0), at(given, 1), given[2]];
  const [leftTurned, rightTurned] = [numberOf(attributes, "transA", 0) === 1, numberOf(attributes, "transB", 0) === 1];
  if (left.dims.length !== 2 || right.dims.length !== 2 || (leftTurned && rightTurned)) throw wrong("a product is of no two matrices in a form that this page knows");
  const [M, K] = (leftTurned ? left.dims.toReversed() : left.dims) as [number, number];
  const [takes, N] = (rightTurned ? right.dims.toReversed() : right.dims) as [number, number];
  if (takes !== K) throw wrong(`rows of ${K} numbers are multiplied with a matrix that takes ${takes}`);
  const to = room.floats(M * N);
  if (more === undefined) to.fill(0);
  else {
    const again = repeats(more, [M, N]);
    if (again === null) throw wrong("what is added to a product has other sizes");
    for (let place = 0; place < to.length; place += again) to.set(more.data, place);
  }
  room.products.add({ to, left: left.data as Float32Array, right: right.data as Float32Array, M, N, K, leftTurned, rightTurned });
  return whole([M, N], to);
}

/** By name. Throws, each: CannotWork for a form that no graph of tacit's has. */
export const OPERATORS: Readonly<Record<string, Operator>> = {
  Identity: (given) => [first(given)],
  Sigmoid: ofEach((value) => 1 / (1 + Math.exp(-value))),
  Tanh: ofEach(Math.tanh),
  Neg: ofEach((value) => -value),
  Log: ofEach(Math.log),
  Not: ofEach((value) => (value === 0 ? 1 : 0)),
  Add: ofPairs(added),
  Sub: ofPairs(subtracted),
  Mul: ofPairs(times),
  Div: ofPairs(done((left, right) => left / right)),
  Max: ofPairs(done(Math.max)),
  Equal: ofPairs(done((left, right) => (left === right ? 1 : 0)), true),
  ReduceSum: reduced(true),
  ReduceMax: reduced(false),
  Softmax: softmax(false),
  LogSoftmax: softmax(true),
  MatMul: multiplied,
  Gemm: multiplied,

  Cast(given, attributes, room) {
    if (numberOf(attributes, "to", 0) !== 1) throw wrong("numbers are cast to another type than float32");
    const { dims, data } = first(given);
    const to = room.floats(data.length);
    to.set(data);
    return whole(dims, to);
  },

  Shape(given, _, room) {
    const { dims } = first(given);
    const to = room.wholes(dims.length);
    to.set(dims);
    return whole([dims.length], to);
  },

  Size(given, _, room) {
    const to = room.wholes(1);
    to[0] = first(given).data.length;
    return whole([], to);
  },

  Reshape(given) {
    const { data } = first(given);
    const wanted = numbersOf(given[1]);
    const known = sizeOf(wanted.filter((each) => each !== -1));
    const dims = wanted.map((each) => (each === -1 ? data.length / known : each));
    if (sizeOf(dims) !== data.length) throw wrong(`${data.length} numbers are no [${wanted}]`);
    return whole(dims, data);
  },

  Flatten(given, attributes) {
    const { dims, data } = first(given);
    const axis = axisOf(attributes, dims.length, 1);
    return whole([sizeOf(dims.slice(0, axis)), sizeOf(dims.slice(axis))], data);
  },

  Unsqueeze(given) {
    const { dims, data } = first(given);
    const found = [...dims];
    for (const axis of numbersOf(given[1])) found.splice(axis < 0 ? axis + found.length + 1 : axis, 0, 1);
    return whole(found, data);
  },

  Transpose(given, attributes, room) {
    const { dims, data } = first(given);
    const order = attributes.get("perm")?.numbers.join() ?? "1,0";
    const [rows, columns] = dims as [number, number];
    if (dims.length !== 2 || order !== "1,0") throw wrong("other than two axes are turned");
    const to = isWhole(first(given)) ? room.wholes(data.length) : room.floats(data.length);
    for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) to[column * rows + row] = data[row * columns + column] as number;
    return whole([columns, rows], to);
  },

  Expand(given, _, room) {
    const from = first(given);
    const dims = broadcast(from.dims, numbersOf(given[1]));
    const to = isWhole(from) ? room.wholes(sizeOf(dims)) : room.floats(sizeOf(dims));
    const place = spread(from, dims);
    for (let each = 0; each < to.length; each++) to[each] = from.data[place(each)] as number;
    return whole(dims, to);
  },

  Concat(given, attributes, room) {
    const { dims } = first(given);
    const axis = axisOf(attributes, dims.length, 0);
    const size = given.reduce((sum, each) => sum + (each.dims[axis] ?? 1), 0);
    const found = dims.map((each, place) => (place === axis ? size : each));
    const [outer, , inner] = about(dims, axis);
    const to = isWhole(first(given)) ? room.wholes(sizeOf(found)) : room.floats(sizeOf(found));
    let before = 0;
    for (const { dims: own, data } of given) {
      const width = (own[axis] ?? 1) * inner;
      for (let o = 0; o < outer; o++) to.set(data.subarray(o * width, (o + 1) * width), o * size * inner + before);
      before += width;
    }
    return whole(found, to);
  },

  Split(given, attributes, room, outputs) {
    const { dims, data } = first(given);
    const axis = axisOf(attributes, dims.length, 0);
    const [outer, size, inner] = about(dims, axis);
    const part = (size / outputs) * inner;
    if (given.length > 1 || !Number.isInteger(size / outputs)) throw wrong("rows are split into unequal parts");
    return Array.from({ length: outputs }, (_, place) => {
      const to = room.floats(outer * part);
      for (let o = 0; o < outer; o++) to.set(data.subarray(o * size * inner + place * part, o * size * inner + (place + 1) * part), o * part);
      return { dims: dims.map((each, own) => (own === axis ? size / outputs : each)), data: to };
    });
  },

  Slice(given, _, room) {
    const { dims, data } = first(given);
    const [[start = 0], [end = 0], [axis = 0]] = [numbersOf(given[1]), numbersOf(given[2]), numbersOf(given[3])];
    const [outer, size, inner] = about(dims, axis);
    const within = (place: number): number => Math.max(0, Math.min(size, place < 0 ? place + size : place));
    const [from, behind] = [within(start), within(end)];
    if (given.length > 4 || axis < 0 || numbersOf(given[1]).length !== 1) throw wrong("a slice is of several axes, or takes steps");
    const count = Math.max(0, behind - from);
    const to = isWhole(first(given)) ? room.wholes(outer * count * inner) : room.floats(outer * count * inner);
    for (let o = 0; o < outer; o++) to.set(data.subarray((o * size + from) * inner, (o * size + from + count) * inner), o * count * inner);
    return whole(dims.map((each, own) => (own === axis ? count : each)), to);
  },

  Gather(given, attributes, room) {
    const [{ dims, data }, places] = [first(given), at(given, 1)];
    const axis = axisOf(attributes, dims.length, 0);
    const [outer, size, inner] = about(dims, axis);
    const count = places.data.length;
    const to = isWhole(first(given)) ? room.wholes(outer * count * inner) : room.floats(outer * count * inner);
    for (let o = 0; o < outer; o++) {
      for (let each = 0; each < count; each++) {
        const from = o * size + placed(places.data[each] as number, size);
        to.set(data.subarray(from * inner, (from + 1) * inner), (o * count + each) * inner);
      }
    }
    return whole([...dims.slice(0, axis), ...places.dims, ...dims.slice(axis + 1)], to);
  },

  GatherElements(given, attributes, room) {
    const [{ dims, data }, places] = [first(given), at(given, 1)];
    const [, size, inner] = about(dims, axisOf(attributes, dims.length, 0));
    const count = places.dims[axisOf(attributes, dims.length, 0)] ?? 1;
    const to = isWhole(first(given)) ? room.wholes(places.data.length) : room.floats(places.data.length);
    for (let each = 0; each < to.length; each++) to[each] = data[elementAt(each, places.data, count, size, inner)] as number;
    return whole(places.dims, to);
  },

  ScatterElements(given, attributes, room) {
    const [{ dims, data }, places, values] = [first(given), at(given, 1), at(given, 2)];
    const [, size, inner] = about(dims, axisOf(attributes, dims.length, 0));
    const count = places.dims[axisOf(attributes, dims.length, 0)] ?? 1;
    const reduction = attributes.get("reduction")?.text ?? "none";
    if (reduction !== "add" && reduction !== "none" && reduction !== "") throw wrong(`numbers are put in by '${reduction}'`);
    const to = room.floats(data.length);
    to.set(data);
    for (let each = 0; each < places.data.length; each++) {
      const place = elementAt(each, places.data, count, size, inner);
      to[place] = (reduction === "add" ? (to[place] as number) : 0) + (values.data[each] as number);
    }
    return whole(dims, to);
  },

  ScatterND(given, _, room) {
    const [{ dims, data }, places, values] = [first(given), at(given, 1), at(given, 2)];
    const [size = 0, ...rest] = dims;
    const row = sizeOf(rest);
    if (places.dims.at(-1) !== 1) throw wrong("numbers are put in by more than a row");
    const to = room.floats(data.length);
    to.set(data);
    places.data.forEach((place, each) => to.set(values.data.subarray(each * row, (each + 1) * row), placed(place, size) * row));
    return whole(dims, to);
  },

  NonZero(given, _, room) {
    const { dims, data } = first(given);
    if (dims.length !== 2) throw wrong("what is not zero is looked for along other than two axes");
    const found = Array.from(data.keys()).filter((place) => data[place] !== 0);
    const to = room.wholes(2 * found.length);
    const columns = dims[1] as number;
    found.forEach((place, each) => {
      to[each] = Math.floor(place / columns);
      to[found.length + each] = place % columns;
    });
    return whole([2, found.length], to);
  },
};

/** Where a number of (outer, count, inner) is in (outer, size, inner), by the places that stand for it along the axis. */
function elementAt(each: number, places: Numbers, count: number, size: number, inner: number): number {
  const outer = Math.floor(each / (count * inner));
  return (outer * size + placed(places[each] as number, size)) * inner + (each % inner);
}

/** Throws: CannotWork for a place that is outside. */
function placed(place: number, size: number): number {
  const found = place < 0 ? place + size : place;
  if (!(found >= 0 && found < size)) throw wrong(`there is no place ${place} among ${size}`);
  return found;
}

function wrong(what: string): CannotWork {
  return new CannotWork(`the page's model cannot be used: ${what}.`);
}
