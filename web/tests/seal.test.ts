/** Settings that nobody should take, and reports that say nothing but numbers. */

import { describe, expect, test } from "vitest";

import { joined, sha256, toHex, utf8 } from "../core/bytes.ts";
import { Malformed, Refused } from "../core/errors.ts";
import { bitLength, modulusOf, polynomialBytes, PUBLISHED } from "../core/seal/parameters.ts";
import { sealedReport } from "../core/seal/report.ts";
import {
  refuseRound,
  reportBytesOf,
  sealedRound,
  seedOf,
  settingsBytes,
  type Demands,
  type SealedRound,
} from "../core/seal/round.ts";
import { agreed, agreementKeyOf, stream } from "../core/seal/secrets.ts";
import { encoderOf, sealerOf, type SealedPlan, type SealedTask } from "../core/seal/sealing.ts";
import { lagrange, modulo, PRIME, uniform } from "../core/seal/shares.ts";
import { fieldsOf } from "../core/seal/wire.ts";
import { LATTICE } from "./lattice.ts";
import { settings } from "./rounds.ts";
import { seeded } from "./seeded.ts";

function demandsOf(round: SealedRound): Demands {
  return {
    threshold: round.reportGoal,
    decryptors: round.decryptors.map(toHex),
    boxes: round.boxes.map(toHex),
    corrupt: round.corrupt,
    contributors: round.contributors.map(toHex),
    plan: toHex(round.plan),
    round: round.roundIndex,
    dimension: round.dimension,
    largest: round.largest,
    seed: null,
    joined: [],
  };
}

describe("settings", () => {
  test("quorum, columns and slots are those of the page", async () => {
    for (const [decryptors, corrupt, quorum, packed] of [
      [2, 1, 2, 1],
      [4, 1, 3, 2],
      [7, 2, 5, 3],
    ] as const) {
      const round = await sealedRound(await settings({ decryptors, corrupt }));
      expect([round.quorum, round.packed, round.columns]).toEqual([quorum, packed, Math.ceil(4096 / packed)]);
    }
    const large = { set: "willow-16384", dimension: 148 * 2 ** 14, largest: 72, most: 6500, goal: 100 };
    const { slots } = await sealedRound(await settings(large));
    expect([slots.width, slots.perCoefficient, slots.checks, slots.polynomials]).toEqual([19, 11, 7, 14]);
    const noisy = await sealedRound(await settings({ ...large, contributors: 3, margin: 477_000 }));
    expect([noisy.slots.width, noisy.slots.perCoefficient, noisy.slots.polynomials]).toEqual([22, 10, 15]);
    expect(polynomialBytes(noisy.parameters)).toBe(499712);
    expect(Object.values(PUBLISHED).map((each) => bitLength(modulusOf(each)))).toEqual([76, 200, 244]);
  });

  test.each([
    [{ set: "willow-2048" }, /'willow-2048' are no published/],
    [{ set: "constructor" }, /'constructor' are no published/],
    [{ goal: 1 }, /from 2 to/],
    [{ goal: 11 }, /from 2 to/],
    [{ most: 12_201_612, largest: 1 }, /from 2 to 12201611/],
    [{ dimension: 0 }, /say nothing/],
    [{ largest: 0 }, /say nothing/],
    [{ largest: 2 ** 32 }, /words have 32/],
    [{ largest: 2 ** 29, most: 8 }, /words have 32/],
    [{ corrupt: 0 }, /0 of 3 decryptors/],
    [{ corrupt: 3 }, /3 of 3 decryptors/],
    [{ margin: 5 }, /margin of at least 1/],
    [{ contributors: 2 }, /margin of at least 1/],
    [{ set: "willow-8192", most: 12_000_000, largest: 1 }, null],
  ] as const)("what nobody can keep is refused: %o", async (given, said) => {
    const bytes = await settings(given);
    if (said === null) await sealedRound(bytes);
    else {
      await expect(sealedRound(bytes)).rejects.toThrow(Refused);
      await expect(sealedRound(bytes)).rejects.toThrow(said);
    }
  });

  test("a record that is cut, longer, or has a field of another length is none", async () => {
    const whole = await settings();
    const fields = fieldsOf(whole, 15);
    const chance = seeded(11);
    for (let turn = 0; turn < 60; turn++)
      await expect(sealedRound(whole.slice(0, chance.below(whole.length)))).rejects.toThrow(Malformed);
    await expect(sealedRound(joined(whole, new Uint8Array(4)))).rejects.toThrow(/more than 15 fields/);
    for (const place of [1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 14]) {
      const mutant = joined(
        ...fields
          .map((each, at) => (at === place ? joined(each, new Uint8Array(1)) : each))
          .flatMap((each) => [Uint8Array.from([each.length & 255, each.length >> 8, 0, 0]), each]),
      );
      await expect(sealedRound(mutant)).rejects.toThrow(Malformed);
    }
    expect(() => settingsBytes("0g")).toThrow(Malformed);
    expect(() => settingsBytes("000")).toThrow(Malformed);
    expect(settingsBytes(toHex(whole))).toEqual(whole);
  });

  test("a device takes the round that its plan and task say, and no other", async () => {
    const round = await sealedRound(await settings({ contributors: 2, margin: 3, corrupt: 1, decryptors: 4 }));
    const right = demandsOf(round);
    refuseRound(round, right);
    refuseRound(round, { ...right, seed: round.seed, threshold: 1, contributors: [] });
    const other = "00".repeat(32);
    const mutants: readonly [Partial<Demands>, RegExp][] = [
      [{ threshold: 3 }, /opens sums of 2 reports/],
      [{ decryptors: [other, ...right.decryptors.slice(1)] }, /none of its plan's/],
      [{ boxes: [other, ...right.boxes.slice(1)] }, /another box/],
      [
        { decryptors: [...right.decryptors, other], boxes: [...right.boxes, other] },
        /has 4 decryptors, and its plan 5/,
      ],
      [{ corrupt: 2 }, /safe against 1/],
      [{ contributors: [...right.contributors, other] }, /lacks the noise/],
      [{ plan: other }, /another plan/],
      [{ round: 4 }, /another of its rounds/],
      [{ dimension: 6 }, /other vectors/],
      [{ largest: 99 }, /other vectors/],
      [{ seed: new Uint8Array(32) }, /not the seed/],
      [{ joined: [toHex(round.name)] }, /has reported/],
    ];
    for (const [change, said] of mutants) {
      expect(() => refuseRound(round, { ...right, ...change })).toThrow(Refused);
      expect(() => refuseRound(round, { ...right, ...change })).toThrow(said);
    }
  });

  test("the seed of a task is a hash of plan, round, task and signs", async () => {
    const text = `tacit sealed round v1\0${"ab".repeat(32)} 7 ${"cd".repeat(16)} `;
    expect(await seedOf("ab".repeat(32), 7, "cd".repeat(16), new Uint8Array(0))).toEqual(await sha256(utf8(text)));
  });
});

describe("a report", () => {
  test("has one length, whatever the vector, and differs in every part that is drawn", async () => {
    const round = await sealedRound(await settings());
    const reports = [];
    for (const vector of [
      [0, 0, 0, 0, 0],
      [100, 1, 2, 3, 4],
      [0, 0, 0, 0, 0],
    ])
      reports.push(await sealedReport(LATTICE, round, Uint32Array.from(vector)));
    expect(new Set(reports.map((each) => each.length))).toEqual(new Set([reportBytesOf(round).report]));
    const all = reports.map((each) => fieldsOf(each.subarray(44), 8));
    for (let field = 0; field < 8; field++) expect(new Set(all.map((each) => toHex(each[field]!))).size).toBe(3);
  });

  test("is made of no vector that the round does not sum", async () => {
    const round = await sealedRound(await settings());
    await expect(sealedReport(LATTICE, round, new Uint32Array(4))).rejects.toThrow(/a vector of 4 words/);
    await expect(sealedReport(LATTICE, round, Uint32Array.from([0, 101, 0, 0, 0]))).rejects.toThrow(
      /a word of the vector is 101/,
    );
  });

  test("is sealed to no key with which anybody agrees", async () => {
    const own = await agreementKeyOf(new Uint8Array(32).fill(9));
    const small = [new Uint8Array(32), Uint8Array.from({ length: 32 }, (_, place) => Number(place === 0))];
    for (const key of small) await expect(agreed(own, key, "sealed box")).rejects.toThrow(Refused);
    const round = await sealedRound(await settings());
    await expect(
      sealedReport(LATTICE, { ...round, boxes: [small[1]!, ...round.boxes.slice(1)] }, new Uint32Array(5)),
    ).rejects.toThrow(Refused);
  });
});

describe("a device", () => {
  const asked = { clip_estimate: null, loss_bound: null };
  const encoded = {
    parameters: 5,
    dimension: 8,
    clip_norm: 1,
    scale: 4,
    report_goal: 10,
    sigmas: 10,
    margin: 0,
    signs: "07".repeat(32),
    length: 9,
  };

  test("seals what its plan and task ask for, and refuses what contradicts them", async () => {
    const shape = { length: 9, largest: 30, signs: new Uint8Array(0) };
    const sealer = sealerOf<SealedPlan, SealedTask>(LATTICE, () => shape);
    const bytes = await settings({ dimension: 9, largest: 30 });
    const round = await sealedRound(bytes);
    const { decryptors: keepers, threshold, boxes, corrupt, contributors } = demandsOf(round);
    const plan = { aggregation: { keepers, threshold, boxes, corrupt, contributors } };
    const task = { plan: toHex(round.plan), round: 3, task: "0a", sealed: toHex(bytes) };
    const words = await encoderOf(LATTICE).encode(new Float32Array(5), encoded, null, null);
    const { name, series, bytes: size } = await sealer.check(plan, task);
    expect([name, series]).toEqual([toHex(round.name), toHex(round.series)]);
    expect((await sealer.seal(plan, task, words)).length).toBe(size);
    await expect(sealer.check(plan, task, [name])).rejects.toThrow(/has reported/);
    await expect(sealer.check(plan, { ...task, round: 4 })).rejects.toThrow(Refused);
    await expect(sealer.seal(plan, { ...task, round: 4 }, words)).rejects.toThrow(Refused);
    await expect(sealer.check(plan, { ...task, sealed: null })).rejects.toThrow(Refused);
    const other = sealerOf<SealedPlan, SealedTask>(LATTICE, () => ({ ...shape, largest: 31 }));
    await expect(other.check(plan, task)).rejects.toThrow(/other vectors/);
  });

  test("computes the seed of its own task where others add noise", async () => {
    const shape = { length: 5, largest: 100, signs: new Uint8Array(32).fill(7) };
    const sealer = sealerOf<SealedPlan, SealedTask>(LATTICE, () => shape);
    const given = { contributors: 1, margin: 2 };
    const task = { plan: "08".repeat(32), round: 3, task: "0a" };
    const right = await seedOf(task.plan, task.round, task.task, shape.signs);
    for (const [seed, isTaken] of [
      [right, true],
      [new Uint8Array(32), false],
    ] as const) {
      const bytes = await settings({ ...given, seed });
      const { decryptors: keepers, threshold, boxes, corrupt, contributors } = demandsOf(await sealedRound(bytes));
      const checked = sealer.check(
        { aggregation: { keepers, threshold, boxes, corrupt, contributors } },
        { ...task, sealed: toHex(bytes) },
      );
      await (isTaken ? checked : expect(checked).rejects.toThrow(/not the seed of its own task/));
    }
  });

  test("encodes for the length that its task says", () => {
    const encoder = encoderOf(LATTICE);
    encoder.check(encoded, asked);
    expect(() => encoder.check(encoded, { ...asked, clip_estimate: 0.5 })).toThrow(
      /have 10 words, and the task says 9/,
    );
    expect(() => encoder.check({ ...encoded, length: 8 }, asked)).toThrow(Refused);
  });
});

test("a stream is one, however it is asked for", async () => {
  const chance = seeded(12);
  const seed = new Uint8Array(32).fill(4);
  const whole = await stream(seed)(5000);
  const draw = stream(seed);
  for (let at = 0; at < whole.length;) {
    const size = Math.min(chance.below(70), whole.length - at);
    expect(await draw(size)).toEqual(whole.subarray(at, at + size));
    at += size;
  }
});

test("elements that are p are drawn again", async () => {
  const drawn = [[PRIME, 5, 2 ** 32 - 1, 6], [PRIME, 2 ** 31 + 7], [8]];
  const bytes = drawn.map((each) => new Uint8Array(Uint32Array.from(each).buffer));
  const found = await uniform(4, async (size) => {
    const next = bytes.shift()!;
    expect(size).toBe(next.length);
    return next;
  });
  expect([...found]).toEqual([8, 5, 7, 6]);
});

test("Lagrange's weights give values of polynomials", () => {
  const chance = seeded(13);
  for (let turn = 0; turn < 30; turn++) {
    const count = 1 + chance.below(6);
    const coefficients = Array.from({ length: count }, () => BigInt(chance.below(PRIME)));
    const value = (at: number): bigint =>
      coefficients.reduceRight((sum, each) => (sum * BigInt(at) + each) % BigInt(PRIME), 0n);
    const nodes = Array.from({ length: count }, (_, place) => (place % 2 ? PRIME - 1 - place : place + 1));
    const at = [0, 50, PRIME - 60, chance.below(PRIME - 200) + 100];
    const weights = lagrange(nodes, at);
    at.forEach((point, row) => {
      const found = nodes.reduce(
        (sum, node, column) => sum + BigInt(weights.values[row * count + column]!) * value(node),
        0n,
      );
      expect(found % BigInt(PRIME)).toBe(value(point));
    });
  }
  expect([modulo(-1), modulo(PRIME), modulo(-3 * PRIME + 2)]).toEqual([PRIME - 1, 0, 2]);
});
