/** tests/vectors/encodings.json and sealed.json, which the Python side writes: byte for byte. */

import { existsSync, readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { fromHex, sha256, toHex } from "../core/bytes.ts";
import {
  behindOf,
  bitsOf,
  encode,
  factorsOf,
  largestOf,
  lengthOf,
  longestSquaredOf,
  paleyMatrix,
  rotate,
  type EncodingNumbers,
} from "../core/encoding.ts";
import { machineOf } from "../core/seal/machine.ts";
import { polynomialBytes, PUBLISHED, thresholds } from "../core/seal/parameters.ts";
import { sealedReport } from "../core/seal/report.ts";
import { primitiveRoot, ringOf } from "../core/seal/ring.ts";
import {
  refuseRound,
  reportBytesOf,
  sealedRound,
  seedOf,
  settingsBytes,
  type SealedRound,
} from "../core/seal/round.ts";
import { agreed, agreementKeyOf, derived, identityOf, sealed, signature, stream, tag } from "../core/seal/secrets.ts";
import { combining, lagrange, pointsOf, PRIME, split, uniform, wordsIn } from "../core/seal/shares.ts";
import { LATTICE } from "./lattice.ts";
import { settings } from "./rounds.ts";

type Bytes = Uint8Array<ArrayBuffer>;

interface Case {
  readonly name: string;
}

interface Long {
  readonly bytes: number;
  readonly first: string;
  readonly sha256: string;
}

interface Encodings {
  readonly streams: readonly (Case & { readonly key: string; readonly bytes: string })[];
  readonly paley: Readonly<Record<string, readonly string[]>>;
  readonly paley_sha256: Readonly<Record<string, string>>;
  readonly rotations: readonly (Case & {
    readonly dimension: number;
    readonly paley: number;
    readonly power: number;
    readonly vector?: string;
    readonly rotated?: string;
    readonly first?: string;
    readonly sha256?: string;
  })[];
  readonly choices: readonly (Case &
    Omit<EncodingNumbers, "margin"> & {
      readonly largest: number;
      readonly longest_squared: number;
      readonly bits: number;
    })[];
  readonly cases: readonly (Case & {
    readonly encoding: EncodingNumbers;
    readonly update: string;
    readonly signs: string;
    readonly rounding: string;
    readonly words: readonly number[];
  })[];
  readonly behind: readonly (Case & {
    readonly clip_estimate: number | null;
    readonly loss_bound: number | null;
    readonly norm: number;
    readonly loss: number;
    readonly length: number;
    readonly behind: readonly number[];
  })[];
  readonly losses: readonly (Case & { readonly loss: number; readonly bound: number; readonly whole: number })[];
}

interface Sealed {
  readonly functions: readonly (Case & { readonly gives: string; readonly context?: readonly string[] } & Readonly<
      Record<string, unknown>
    >)[];
  readonly rings: readonly (Case & {
    readonly degree: number;
    readonly primes: readonly (number | string)[];
    readonly psi: readonly (number | string)[];
    readonly coefficients?: readonly number[];
    readonly transform?: readonly (readonly number[])[];
    readonly transform_of_the_square?: readonly (readonly number[])[];
    readonly packed?: string;
    readonly transform_begins?: readonly (readonly string[])[];
    readonly transform_packed?: Long;
    readonly seed?: string;
    readonly polynomial?: number;
    readonly public_begins?: readonly (readonly string[])[];
    readonly public_packed?: Long;
    readonly public_scaled_begins?: readonly number[];
    readonly shift?: number;
    readonly factor?: number;
  })[];
  readonly thresholds: readonly string[];
  readonly gaussians: readonly (Case & { readonly words: readonly string[]; readonly numbers: readonly number[] })[];
  readonly slots: readonly (Case & {
    readonly set: string;
    readonly dimension: number;
    readonly largest: number;
    readonly most_reports: number;
    readonly contributors: number;
    readonly margin: number;
    readonly width: number;
    readonly per_coefficient: number;
    readonly checks: number;
    readonly polynomials: number;
    readonly body_bytes: number;
    readonly quorum: number;
    readonly packed: number;
    readonly columns: number;
    readonly last_polynomial_begins: readonly string[];
  })[];
  readonly shares: readonly (Case & {
    readonly rows: readonly (readonly number[])[];
    readonly random: readonly (readonly number[])[];
    readonly shares: readonly (readonly number[])[];
    readonly weights_of_the_first_shares: readonly (readonly number[])[];
  })[];
  readonly settings: readonly (Case & {
    readonly settings: string;
    readonly threshold: number;
    readonly keepers: readonly string[];
    readonly corrupt: number;
    readonly accepted: boolean;
  })[];
  readonly seeds: readonly (Case & { readonly task: string; readonly seed: string })[];
  readonly cases: readonly (Case & {
    readonly settings: string;
    readonly identity: string;
    readonly seed: string;
    readonly steps: { readonly round: string; readonly series: string };
    readonly report: Long;
    readonly bytes?: string;
  })[];
}

function vectors<File>(name: string): File | null {
  const path = new URL(`../../tests/vectors/${name}.json`, import.meta.url);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as File) : null;
}

const encodings = vectors<Encodings>("encodings");
const reports = vectors<Sealed>("sealed");
const NOWHERE: [string, never][] = [
  ["tests/vectors is not there; python -m tests.make_vectors writes it", null as never],
];

/** By name; one that is skipped where there is no file. */
function named<Kind extends Case>(cases: readonly Kind[] | undefined): [string, Kind][] {
  return cases?.map((each) => [each.name, each]) ?? NOWHERE;
}

function realsIn(digits: string): Float32Array {
  return new Float32Array(fromHex(digits).buffer);
}

async function long(bytes: Bytes): Promise<Long> {
  return { bytes: bytes.length, first: toHex(bytes.slice(0, 64)), sha256: toHex(await sha256(bytes)) };
}

/** Number i is 7 i modulo largest + 1. */
function countedVector(dimension: number, largest: number): Uint32Array {
  return Uint32Array.from({ length: dimension }, (_, place) => (7 * place) % (largest + 1));
}

describe.skipIf(encodings === null)("encodings", () => {
  test.each(named(encodings?.streams))("%s", async (_, each) => {
    expect(toHex(await stream(fromHex(each.key))(each.bytes.length / 2))).toBe(each.bytes);
  });

  test("Paley's matrices", async () => {
    for (const [order, digest] of Object.entries(encodings!.paley_sha256)) {
      const matrix = paleyMatrix(Number(order));
      expect(toHex(await sha256(Uint8Array.from(matrix.flat(), (entry) => Number(entry > 0))))).toBe(digest);
      const shown = encodings!.paley[order];
      if (shown) expect(matrix.map((row) => row.map((entry) => (entry > 0 ? "+" : "-")).join(""))).toEqual(shown);
    }
  });

  test.each(named(encodings?.rotations))("rotation, %s", async (_, each) => {
    const { dimension } = each;
    expect(factorsOf(dimension)).toEqual({ order: each.paley, power: each.power });
    const machine = await machineOf(LATTICE);
    const at = machine.room(4 * dimension);
    const vector = each.vector
      ? realsIn(each.vector)
      : Float32Array.from({ length: dimension }, (_, place) => ((7 * place) % 19) - 9);
    machine.reals(at, dimension).set(vector);
    rotate(machine, at, dimension);
    machine.loops.scaleWithin(at, dimension, Math.fround(1 / Math.sqrt(dimension)), Infinity);
    const found = Uint8Array.from(machine.bytes(at, 4 * dimension));
    if (each.rotated) expect(toHex(found)).toBe(each.rotated);
    else expect([toHex(found.slice(0, 32)), toHex(await sha256(found))]).toEqual([each.first, each.sha256]);
  });

  test.each(named(encodings?.choices))("%s", (_, each) => {
    const encoding = { ...each, margin: 0 };
    expect([largestOf(encoding), longestSquaredOf(encoding), bitsOf(encoding)]).toEqual([
      each.largest,
      each.longest_squared,
      each.bits,
    ]);
  });

  test.each(named(encodings?.cases))("an update %s", async (_, each) => {
    const words = await encode(
      LATTICE,
      realsIn(each.update),
      each.encoding,
      fromHex(each.signs),
      fromHex(each.rounding),
    );
    expect([...words]).toEqual(each.words);
  });

  test.each(named(encodings?.behind))("behind the coordinates, %s", (_, each) => {
    const encoding = encodings!.cases[0]!.encoding;
    const { clip_estimate: estimate, loss_bound: bound } = each;
    const loss = bound === null ? null : { value: Math.min(Math.max(each.loss, 0), bound) - bound / 2, bound };
    expect(behindOf(encoding, estimate === null ? null : each.norm <= estimate, loss)).toEqual(each.behind);
    expect(lengthOf(encoding, estimate !== null, bound !== null)).toBe(each.length);
  });

  test.each(named(encodings?.losses))("%s", (_, each) => {
    const encoding = encodings!.cases[0]!.encoding;
    const { bound } = each;
    const value = Math.min(Math.max(Math.fround(each.loss), 0), bound) - bound / 2;
    const digits = behindOf(encoding, null, { value, bound }).slice(1);
    const base = 2 * largestOf(encoding) + 1;
    expect(digits.reduceRight((sum, digit) => sum * base + digit, 0)).toBe(each.whole);
  });
});

describe.skipIf(reports === null)("sealed reports", () => {
  test.each(named(reports?.functions))("the function %s", async (name, each) => {
    const bytes = (key: string): Bytes => fromHex(String(each[key]));
    const purpose = String(each["purpose"]);
    const context = (each.context ?? []).map(fromHex);
    const found: Readonly<Record<string, () => Promise<Uint8Array>>> = {
      derived: () => derived(bytes("secret"), purpose, ...context),
      agreed: async () => agreed(await agreementKeyOf(bytes("private")), bytes("other"), purpose, ...context),
      sealed: () => sealed(bytes("to"), bytes("content"), bytes("associated"), async () => bytes("ephemeral_private")),
      tag: () => tag(bytes("key"), bytes("data")),
      signature: async () => signature(await identityOf(bytes("private")), purpose, bytes("message")),
      stream: () => stream(bytes("seed"))(80),
    };
    expect(toHex(await found[name.split(",")[0]!]!())).toBe(each.gives);
  });

  test.each(named(reports?.rings))("the ring %s", async (name, each) => {
    const { degree } = each;
    const primes = each.primes.map(BigInt);
    const published = PUBLISHED[name];
    const machine = await machineOf(LATTICE);
    const ring = ringOf(machine, published ?? { degree, primes, plainBits: 1, shift: 1, factor: 1 });
    expect(primes.map((prime) => primitiveRoot(prime, degree))).toEqual(each.psi.map(BigInt));
    const [small, at, square, prepared] = [
      machine.room(8 * degree),
      ring.polynomial(),
      ring.polynomial(),
      ring.polynomial(),
    ];
    const numbers = Array.from({ length: degree }, (_, place) => BigInt(each.coefficients?.[place] ?? place - 5));
    machine.longs(small, degree).set(numbers);
    const row = (from: number, index: number): bigint[] => [...machine.longs(from + 8 * degree * index, degree)];
    const shown = (from: number, count: number): bigint[][] =>
      primes.map((_, index) => row(from, index).slice(0, count));
    const whole = (table: readonly (readonly (number | string)[])[] | undefined): bigint[][] | undefined =>
      table?.map((values) => values.map(BigInt));
    primes.forEach((prime, index) =>
      machine.longs(at + 8 * degree * index, degree).set(numbers.map((value) => ((value % prime) + prime) % prime)),
    );
    ring.transform(at);
    const packed = new Uint8Array(polynomialBytes({ degree, primes, plainBits: 1, shift: 1, factor: 1 }));
    if (degree >= 64) ring.pack(at, packed, 0);
    if (published === undefined) {
      expect(shown(at, degree)).toEqual(whole(each.transform));
      ring.prepared(small, prepared);
      ring.addProduct(square, at, prepared);
      expect(shown(square, degree)).toEqual(whole(each.transform_of_the_square));
      if (each.packed) expect(toHex(packed)).toBe(each.packed);
      return;
    }
    expect([shown(at, 4), await long(packed)]).toEqual([whole(each.transform_begins), each.transform_packed]);
    expect([published.shift, published.factor]).toEqual([each.shift, each.factor]);
    await ring.publicPolynomial(fromHex(each.seed ?? ""), each.polynomial ?? 0, at);
    ring.pack(at, packed, 0);
    expect([shown(at, 4), await long(packed)]).toEqual([whole(each.public_begins), each.public_packed]);
    ring.switched(at, small);
    expect([...machine.words(small, 8)]).toEqual(each.public_scaled_begins);
  });

  test("discrete Gaussians", async () => {
    expect(thresholds().map((each) => each.toString(16).padStart(32, "0"))).toEqual(reports!.thresholds);
    for (const each of reports!.gaussians) {
      const machine = await machineOf(LATTICE);
      const ring = ringOf(machine, PUBLISHED["willow-4096"]!);
      const drawn = new Uint8Array(16 * ring.degree);
      drawn.set(fromHex(each.words.join("")));
      const out = machine.room(8 * ring.degree);
      ring.sample(drawn, out);
      const found = [...machine.longs(out, each.numbers.length)].map((value) => Number(BigInt.asIntN(64, value)));
      expect(found).toEqual(each.numbers);
    }
  });

  test.each(named(reports?.slots))("slots: %s", async (_, each) => {
    const given = {
      set: each.set,
      dimension: each.dimension,
      largest: each.largest,
      most: each.most_reports,
      contributors: each.contributors,
      margin: each.margin,
    };
    const round = await sealedRound(await settings({ ...given, corrupt: 1, decryptors: 3 }));
    const { width, perCoefficient, checks, polynomials, capacity } = round.slots;
    expect([width, perCoefficient, checks, polynomials]).toEqual([
      each.width,
      each.per_coefficient,
      each.checks,
      each.polynomials,
    ]);
    expect([reportBytesOf(round).body, round.quorum, round.packed, round.columns]).toEqual([
      each.body_bytes,
      each.quorum,
      each.packed,
      each.columns,
    ]);
    const machine = await machineOf(LATTICE);
    const part = countedVector(round.dimension, round.largest).subarray((polynomials - 1) * capacity);
    const [numbers, wide] = [machine.room(4 * part.length), machine.room(32 * round.parameters.degree)];
    machine.words(numbers, part.length).set(part);
    machine.loops.fill(wide, round.parameters.degree, numbers, part.length, perCoefficient, width, checks);
    const begins = [0, 1, 2, 3, 4, 5].map((place) =>
      String(machine.longs(wide + 32 * place, 4).reduceRight((sum, limb) => (sum << 64n) + limb, 0n)),
    );
    expect(begins).toEqual(each.last_polynomial_begins);
  });

  test.each(named(reports?.shares))("shares: %s", async (_, each) => {
    const { rows } = each;
    const [decryptors, corrupt, columns] = [each.shares.length, each.random.length, rows[0]!.length];
    const seed = new Uint8Array(32).fill(decryptors);
    expect([...(await uniform(corrupt * columns, stream(seed)))]).toEqual(each.random.flat());
    const secrets = { rows: rows.length, columns, values: Uint32Array.from(rows.flat()) };
    const shares = await split(secrets, decryptors, corrupt, stream(seed), combining(await machineOf(LATTICE)));
    expect([...shares.values]).toEqual(each.shares.flat());
    const back = lagrange(
      pointsOf(rows.length + corrupt),
      rows.map((_, place) => PRIME - 1 - place),
    );
    expect([...back.values]).toEqual(each.weights_of_the_first_shares.flat());
  });

  test.each(named(reports?.settings))("settings: %s", async (_, each) => {
    const taken = async (): Promise<void> => {
      const round = await sealedRound(settingsBytes(each.settings));
      const whole = await sealedRound(settingsBytes(reports!.settings[0]!.settings));
      refuseRound(round, demands(whole, each));
    };
    if (each.accepted) await taken();
    else await expect(taken()).rejects.toThrow();
  });

  function demands(round: SealedRound, plan: Sealed["settings"][number]): Parameters<typeof refuseRound>[1] {
    return {
      threshold: plan.threshold,
      decryptors: plan.keepers,
      boxes: round.boxes.map(toHex),
      corrupt: plan.corrupt,
      contributors: [],
      plan: toHex(round.plan),
      round: round.roundIndex,
      dimension: round.dimension,
      largest: round.largest,
      seed: null,
      joined: [],
    };
  }

  test.each(named(reports?.seeds))("%s", async (_, each) => {
    const task = JSON.parse(each.task) as {
      plan: string;
      round: number;
      task: string;
      asks: { encoded?: { signs: string } | null };
    };
    const seed = await seedOf(task.plan, task.round, task.task, fromHex(task.asks.encoded?.signs ?? ""));
    expect(toHex(seed)).toBe(each.seed);
  });

  test.each(named(reports?.cases))("the report %s", async (_, each) => {
    const round = await sealedRound(settingsBytes(each.settings));
    expect([toHex(round.name), toHex(round.series)]).toEqual([each.steps.round, each.steps.series]);
    const drawn = [fromHex(each.identity), fromHex(each.seed)];
    const report = await sealedReport(LATTICE, round, countedVector(round.dimension, round.largest), () =>
      drawn.shift()!,
    );
    expect(await long(report)).toEqual(each.report);
    if (each.bytes) expect(toHex(report)).toBe(each.bytes);
    expect(reportBytesOf(round).report).toBe(report.length);
    expect(wordsIn(report.slice(44, 48))[0]).toBe(32); // the first field: the client
  });
});
