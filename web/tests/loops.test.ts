/** The loops of `lattice/` beside obvious ones in whole numbers of any length, on numbers from seeds. */

import { readFileSync } from "node:fs";

import asc from "assemblyscript/asc";
import { describe, expect, test } from "vitest";

import { machineOf } from "../core/seal/machine.ts";
import { bitLength, modulusOf, polynomialBytes, PUBLISHED, TAIL, thresholds } from "../core/seal/parameters.ts";
import { primitiveRoot, ringOf } from "../core/seal/ring.ts";
import { LATTICE } from "./lattice.ts";
import { seeded, type Seeded } from "./seeded.ts";

const FIELD = 2n ** 31n - 1n;
const SETS = Object.entries(PUBLISHED);

function word(chance: Seeded): bigint {
  return [0, 1, 2].reduce((sum) => (sum << 22n) + BigInt(chance.below(2 ** 22)), 0n) & (2n ** 64n - 1n);
}

function turned(number: number, degree: number): number {
  return Number.parseInt([...number.toString(2).padStart(Math.log2(degree), "0")].reverse().join(""), 2);
}

function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  if (exponent === 0n) return 1n;
  const half = power((base * base) % modulus, exponent >> 1n, modulus);
  return exponent & 1n ? (half * base) % modulus : half;
}

function modulo(value: bigint, modulus: bigint): bigint {
  return ((value % modulus) + modulus) % modulus;
}

test("the module that is checked in is what its source compiles to, byte for byte", async () => {
  const made = new Map<string, Uint8Array | string>();
  const baseDir = new URL("..", import.meta.url).pathname;
  const { error, stderr } = await asc.main(["--config", "lattice/asconfig.json", "--baseDir", baseDir], {
    writeFile: (name: string, content: Uint8Array | string) => void made.set(name, content),
  });
  expect(error, stderr.toString()).toBeNull();
  const [compiled] = made.values();
  expect(Buffer.from(compiled!).equals(readFileSync(new URL("../lattice/lattice.wasm", import.meta.url)))).toBe(true);
}, 300_000);

describe.each(SETS)("the ring of %s", (_, parameters) => {
  const { degree, primes, plainBits } = parameters;

  /** Residues of random coefficients below q in a new polynomial, and the coefficients. */
  function fill(machine: Awaited<ReturnType<typeof machineOf>>, at: number, chance: Seeded): bigint[] {
    const q = modulusOf(parameters);
    const coefficients = Array.from(
      { length: degree },
      () => [0, 1, 2, 3].reduce((sum) => (sum << 64n) + word(chance), 0n) % q,
    );
    primes.forEach((prime, row) =>
      machine.longs(at + 8 * degree * row, degree).set(coefficients.map((each) => each % prime)),
    );
    return coefficients;
  }

  test("a transform is the values at odd powers of psi, and goes back", async () => {
    const machine = await machineOf(LATTICE);
    const ring = ringOf(machine, parameters);
    const chance = seeded(degree);
    const at = ring.polynomial();
    const coefficients = fill(machine, at, chance);
    ring.transform(at);
    for (const [row, prime] of primes.entries()) {
      const found = machine.longs(at + 8 * degree * row, degree);
      const psi = primitiveRoot(prime, degree);
      expect(found.every((each) => each < prime)).toBe(true);
      for (const place of [0, 1, degree - 1, ...Array.from({ length: 6 }, () => chance.below(degree))]) {
        const point = power(psi, BigInt(2 * turned(place, degree) + 1), prime);
        expect(found[place]).toBe(coefficients.reduceRight((sum, each) => (sum * point + each) % prime, 0n));
      }
    }
    ring.switched(at, machine.room(4 * degree));
    for (const [row, prime] of primes.entries()) {
      const back = machine.longs(at + 8 * degree * row, degree);
      expect(back.every((each, place) => each === coefficients[place]! % prime)).toBe(true);
    }
  });

  test("scaled to the field, a coefficient is x p / q, rounded", { timeout: 300_000 }, async () => {
    const machine = await machineOf(LATTICE);
    const ring = ringOf(machine, parameters);
    const [at, out] = [ring.polynomial(), machine.room(4 * degree)];
    const coefficients = fill(machine, at, seeded(1));
    ring.transform(at);
    ring.switched(at, out);
    const q = modulusOf(parameters);
    const parts = primes.map((prime) => [prime, power((q / prime) % prime, prime - 2n, prime), 2n ** 128n / prime] as const);
    const near = machine.words(out, degree);
    coefficients.forEach((x, place) => {
      let theta = 0n;
      for (const [prime, inverse, share] of parts) theta += (modulo(x * inverse, prime) * share) >> 64n;
      const element = (((theta & (2n ** 64n - 1n)) * FIELD + 2n ** 63n) >> 64n) % FIELD;
      expect(BigInt(near[place]!)).toBe(element);
      const away = modulo(element - (2n * x * FIELD + q) / (2n * q), FIELD); // theta errs by four parts of 2^64
      expect(away === 0n || away === 1n || away === FIELD - 1n).toBe(true);
    });
  });

  test("a ciphertext is a s + t e + m, place by place", async () => {
    const machine = await machineOf(LATTICE);
    const ring = ringOf(machine, parameters);
    const chance = seeded(2);
    const small = (): { at: number; numbers: readonly bigint[] } => {
      const at = machine.room(8 * degree);
      const numbers = Array.from({ length: degree }, () => BigInt(chance.below(2 * TAIL + 1) - TAIL));
      machine.longs(at, degree).set(numbers);
      return { at, numbers };
    };
    const [key, errors, wide] = [small(), small(), machine.room(32 * degree)];
    const plain = Array.from(
      { length: degree },
      () => [0, 1, 2, 3].reduce((sum) => (sum << 64n) + word(chance), 0n) & (2n ** BigInt(plainBits) - 1n),
    );
    machine
      .longs(wide, 4 * degree)
      .set(plain.flatMap((each) => [0n, 64n, 128n, 192n].map((shift) => (each >> shift) & (2n ** 64n - 1n))));
    const [total, open, prepared, alone] = [ring.polynomial(), ring.polynomial(), ring.polynomial(), ring.polynomial()];
    await ring.publicPolynomial(new Uint8Array(32).fill(9), 4, open);
    ring.encrypted(errors.at, wide, total);
    ring.prepared(key.at, prepared);
    primes.forEach((prime, row) =>
      machine.longs(alone + 8 * degree * row, degree).set(key.numbers.map((each) => modulo(each, prime))),
    );
    ring.transform(alone);
    const before = primes.map((prime, row) => {
      const expected = new BigUint64Array(degree);
      errors.numbers.forEach((e, place) => (expected[place] = modulo((e << BigInt(plainBits)) + plain[place]!, prime)));
      const scratch = machine.room(8 * degree * primes.length);
      machine.longs(scratch + 8 * degree * row, degree).set(expected);
      ring.transform(scratch);
      const found = machine.longs(scratch + 8 * degree * row, degree).slice();
      expect(machine.longs(total + 8 * degree * row, degree)).toEqual(found);
      return found;
    });
    ring.addProduct(total, open, prepared);
    for (const [row, prime] of primes.entries()) {
      const [a, s, c] = [open, alone, total].map((at) => machine.longs(at + 8 * degree * row, degree));
      expect(a!.every((each) => each < prime)).toBe(true);
      expect(c!.every((each, place) => each === (before[row]![place]! + a![place]! * s![place]!) % prime)).toBe(true);
    }
  });

  test("packed residues are strings of bits, lane by lane", async () => {
    const machine = await machineOf(LATTICE);
    const ring = ringOf(machine, parameters);
    const at = ring.polynomial();
    const coefficients = fill(machine, at, seeded(3));
    const packed = new Uint8Array(polynomialBytes(parameters) + 3);
    ring.pack(at, packed, 3);
    let start = 3;
    const lanes = degree / 64;
    for (const prime of primes) {
      const bits = bitLength(prime);
      for (const lane of [0, 1, lanes - 1]) {
        let string = 0n;
        for (let row = 0; row < 64; row++) string |= (coefficients[row * lanes + lane]! % prime) << BigInt(row * bits);
        for (let word = 0; word < bits; word++) {
          const found = new DataView(packed.buffer).getBigUint64(start + 8 * (word * lanes + lane), true);
          expect(found).toBe((string >> BigInt(64 * word)) & (2n ** 64n - 1n));
        }
      }
      start += (degree * bits) / 8;
    }
    expect(start).toBe(packed.length);
  });
});

test("a number of the discrete Gaussian is the first whose threshold is above the word", async () => {
  const machine = await machineOf(LATTICE);
  const parameters = PUBLISHED["willow-4096"]!;
  const ring = ringOf(machine, parameters);
  const chance = seeded(4);
  const table = thresholds();
  const words = [
    0n,
    2n ** 128n - 1n,
    2n ** 64n,
    2n ** 64n - 1n,
    ...table.flatMap((each) => [each - 1n, each, each + 1n]),
  ].map((each) => BigInt.asUintN(128, each));
  while (words.length < ring.degree) words.push((word(chance) << 64n) | word(chance));
  const drawn = new Uint8Array(16 * ring.degree);
  const view = new DataView(drawn.buffer);
  words.forEach((each, place) => {
    view.setBigUint64(16 * place, each & (2n ** 64n - 1n), true);
    view.setBigUint64(16 * place + 8, each >> 64n, true);
  });
  const out = machine.room(8 * ring.degree);
  ring.sample(drawn, out);
  const found = machine.longs(out, ring.degree);
  words.forEach((each, place) => {
    const first = table.findIndex((threshold) => each < threshold);
    expect(BigInt.asIntN(64, found[place]!)).toBe(BigInt((first < 0 ? table.length : first) - TAIL));
  });
});

test("slots hold check slots, then numbers, from the lowest bits on", async () => {
  const chance = seeded(5);
  for (let turn = 0; turn < 40; turn++) {
    const machine = await machineOf(LATTICE);
    const degree = 16;
    const width = 1 + chance.below(32);
    const slots = 1 + chance.below(Math.floor(224 / width));
    const checks = chance.below(degree * slots);
    const numbers = Uint32Array.from({ length: chance.below(degree * slots - checks + 1) }, () =>
      chance.below(2 ** width),
    );
    const [wide, at] = [machine.room(32 * degree), machine.room(4 * numbers.length)];
    machine.words(at, numbers.length).set(numbers);
    machine.loops.fill(wide, degree, at, numbers.length, slots, width, checks);
    const all = [...new Array<number>(checks).fill(1), ...numbers];
    for (let coefficient = 0; coefficient < degree; coefficient++) {
      const expected = all
        .slice(coefficient * slots, (coefficient + 1) * slots)
        .reduceRight((sum, each) => (sum << BigInt(width)) + BigInt(each), 0n);
      const found = machine.longs(wide + 32 * coefficient, 4).reduceRight((sum, each) => (sum << 64n) + each, 0n);
      expect(found).toBe(expected);
    }
  }
});

test("parts and picks of a challenge are of products modulo X^N + 1, products of tables are modulo p", async () => {
  const chance = seeded(6);
  for (let turn = 0; turn < 20; turn++) {
    const machine = await machineOf(LATTICE);
    const { loops, room, words, longs, bytes } = machine;
    const [degree, polynomials, packed, tests, picks] = [16, 3, 1 + chance.below(3), 5, 16];
    const factor = [1, 32, 64][chance.below(3)]!;
    const columns = Math.ceil(degree / packed);
    const element = (): number => [0, 1, Number(FIELD) - 1, chance.below(Number(FIELD))][chance.below(4)]!;
    const alphas = Array.from({ length: polynomials }, () => Uint32Array.from({ length: degree }, element));
    const share = Uint32Array.from({ length: columns }, element);
    const asked = BigUint64Array.from({ length: tests * picks }, () => word(chance));
    const factors = Uint8Array.from({ length: tests * degree }, () => chance.below(256));
    const [at, rows, ask, bytesAt, keys, own, out] = [
      4 * degree,
      4 * polynomials * 2 * degree,
      8 * asked.length,
      factors.length,
      4 * tests * degree,
      4 * columns,
      4 * tests * packed,
    ].map(room) as [number, number, number, number, number, number, number];
    alphas.forEach((alpha, j) => {
      words(at, degree).set(alpha);
      loops.asRow(at, degree, rows + 4 * j * (2 * degree - 1));
    });
    longs(ask, asked.length).set(asked);
    bytes(bytesAt, factors.length).set(factors);
    words(own, columns).set(share);
    for (let test = 0; test < tests; test++) {
      const [picked, signed, row] = [ask + 8 * test * picks, bytesAt + test * degree, keys + 4 * test * degree];
      loops.keyRow(picked, picks, signed, factor, rows, polynomials, degree, row);
    }
    loops.keyParts(keys, tests, degree, own, columns, packed, out);
    const picksOf = (test: number): { sign: bigint; index: number }[] =>
      [...asked.subarray(test * picks, (test + 1) * picks)].map((each) => ({
        sign: (each & 1n) - ((each >> 1n) & 1n),
        index: Number((each * BigInt(polynomials * degree)) >> 64n),
      }));
    for (let test = 0; test < tests; test++) {
      for (let place = 0; place < packed; place++) {
        // The key whose numbers of this row are the share's: what it adds to the test.
        const key = Array.from({ length: degree }, (_, i) =>
          Math.floor(i / columns) === place ? BigInt(share[i % columns]!) : 0n,
        );
        let expected = 0n;
        for (const { sign, index } of picksOf(test)) {
          const [j, i] = [Math.floor(index / degree), index % degree];
          for (let k = 0; k < degree; k++) {
            const [from, wrapped] = i >= k ? [i - k, 1n] : [i - k + degree, -1n];
            expected += sign * wrapped * BigInt(alphas[j]![from]!) * key[k]!;
          }
        }
        for (let k = 0; k < degree; k++)
          expected -= BigInt((factors[test * degree + k]! % (2 * factor)) - factor) * key[k]!;
        expect(BigInt(words(out, tests * packed)[test * packed + place]!)).toBe(modulo(expected, FIELD));
      }
    }
    const coefficients = room(4 * polynomials * degree);
    words(coefficients, polynomials * degree).set(alphas.flatMap((each) => [...each]));
    loops.picked(ask, tests, picks, coefficients, polynomials * degree, out);
    for (let test = 0; test < tests; test++) {
      const expected = picksOf(test).reduce(
        (sum, { sign, index }) => sum + sign * BigInt(alphas[Math.floor(index / degree)]![index % degree]!),
        0n,
      );
      expect(BigInt(words(out, tests)[test]!)).toBe(modulo(expected, FIELD));
    }
    const values = Uint32Array.from({ length: degree * columns }, element);
    const [table, product] = [room(4 * values.length), room(4 * polynomials * columns)];
    words(table, values.length).set(values);
    loops.combine(coefficients, polynomials, degree, table, columns, product);
    for (let row = 0; row < polynomials; row++) {
      for (let column = 0; column < columns; column++) {
        const expected = alphas[row]!.reduce(
          (sum, each, inner) => sum + BigInt(each) * BigInt(values[inner * columns + column]!),
          0n,
        );
        expect(BigInt(words(product, polynomials * columns)[row * columns + column]!)).toBe(expected % FIELD);
      }
    }
  }
});
