/** Beside tests/golden/one_message_protocol.json, the fixed round of version 5 that the Python side wrote. */

import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { fromHex, joined, sha256, toHex } from "../core/bytes.ts";
import { machineOf } from "../core/seal/machine.ts";
import { PUBLISHED, polynomialBytes, thresholds } from "../core/seal/parameters.ts";
import { sealedReport } from "../core/seal/report.ts";
import { primitiveRoot, ringOf } from "../core/seal/ring.ts";
import { sealedRound } from "../core/seal/round.ts";
import { stream } from "../core/seal/secrets.ts";
import { LATTICE } from "./lattice.ts";

interface Long {
  readonly bytes: number;
  readonly first: string;
  readonly sha256: string;
}

interface Golden {
  readonly parts: {
    readonly thresholds: { readonly count: number; readonly first: string; readonly middle: string };
    readonly thresholds_sha256: string;
    readonly numbers: readonly number[];
    readonly sets: Readonly<
      Record<string, { readonly transform_packed: Long; readonly public_polynomial_1_packed: Long }>
    >;
  };
  readonly round: {
    readonly identities: readonly string[];
    readonly draws_are_seeded_by: readonly string[];
    readonly settings: string;
    readonly round: string;
    readonly series: string;
    readonly vectors: readonly (readonly number[])[];
    readonly reports: readonly Long[];
  };
}

const path = new URL("../../tests/golden/one_message_protocol.json", import.meta.url);
// Numbers beyond what one of JavaScript holds become texts.
const text = readFileSync(path, "utf8").replaceAll(/(?<=[[\s])(\d{16,})(?=[,\s\]])/g, '"$1"');
const golden = JSON.parse(text) as Golden;

async function long(bytes: Uint8Array<ArrayBuffer>): Promise<Long> {
  return { bytes: bytes.length, first: toHex(bytes.slice(0, 32)), sha256: toHex(await sha256(bytes)) };
}

describe("the lattice", () => {
  test("the thresholds of the discrete Gaussian are the fixed ones", async () => {
    const table = thresholds();
    const bytes = joined(
      ...table.map((each) => Uint8Array.from({ length: 16 }, (_, place) => Number((each >> BigInt(8 * place)) & 255n))),
    );
    expect(table.length).toBe(golden.parts.thresholds.count);
    expect(`0x${table[table.length / 2]!.toString(16)}`).toBe(golden.parts.thresholds.middle);
    expect(toHex(await sha256(bytes))).toBe(golden.parts.thresholds_sha256);
  });

  test.each(Object.entries(PUBLISHED))(
    "transform, numbers and public polynomials of %s are the fixed ones",
    async (name, parameters) => {
      const machine = await machineOf(LATTICE);
      const ring = ringOf(machine, parameters);
      const fixed = golden.parts.sets[name]!;
      const { degree } = ring;
      const polynomial = ring.polynomial();
      parameters.primes.forEach((prime, at) => {
        const ramp = BigUint64Array.from({ length: degree }, (_, place) => (BigInt(place - 5) + prime) % prime);
        machine.longs(polynomial + 8 * degree * at, degree).set(ramp);
      });
      ring.transform(polynomial);
      const packed = new Uint8Array(polynomialBytes(parameters));
      ring.pack(polynomial, packed, 0);
      expect(await long(packed)).toEqual(fixed.transform_packed);

      await ring.publicPolynomial(new Uint8Array(32).fill(3), 1, polynomial);
      ring.pack(polynomial, packed, 0);
      expect(await long(packed)).toEqual(fixed.public_polynomial_1_packed);

      const small = machine.room(8 * degree);
      ring.sample(await stream(new Uint8Array(32).fill(3))(16 * degree), small);
      expect([...machine.longs(small, 40)].map((each) => Number(BigInt.asIntN(64, each)))).toEqual(
        golden.parts.numbers,
      );
      expect(parameters.primes.every((prime) => primitiveRoot(prime, degree) > 1n)).toBe(true);
    },
  );
});

describe("a report", () => {
  const { round } = golden;

  test("the round's name and its series' are the fixed ones", async () => {
    const settings = await sealedRound(fromHex(round.settings));
    expect(toHex(settings.name)).toBe(round.round);
    expect(toHex(settings.series)).toBe(round.series);
  });

  test.each(round.vectors.map((_, party) => party))(
    "party %i's report is the fixed one, byte for byte",
    async (party) => {
      const settings = await sealedRound(fromHex(round.settings));
      const private_ = await stream(fromHex(round.draws_are_seeded_by[party]!))(32);
      const drawn = [fromHex(round.identities[party]!), private_];
      const report = await sealedReport(LATTICE, settings, Uint32Array.from(round.vectors[party]!), () =>
        drawn.shift()!,
      );
      expect(await long(report)).toEqual(round.reports[party]);
    },
  );
});
