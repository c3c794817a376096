/** Beside tacit in Python: the same integers of an update, and a sum that it opens with three reports of its own. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { describe, expect, test } from "vitest";

import { Draws } from "../answers/draws.ts";
import { counted } from "../answers/histograms.ts";
import { fromHex, toHex } from "../core/bytes.ts";
import { readPlan, readTask } from "../core/documents.ts";
import { bitsOf, encode, encodedReport, largestOf, longestSquaredOf, type EncodingNumbers } from "../core/encoding.ts";
import { sealedReport } from "../core/seal/report.ts";
import { sealedRound } from "../core/seal/round.ts";
import { calculationsOf, sealingOf } from "../core/sealing.ts";
import { LATTICE } from "./lattice.ts";
import { PLAIN, planSaid, taskSaid } from "./plans.ts";

const python = process.env["TACIT_PYTHON"] ?? "";
const SIDE = new URL("python_side.py", import.meta.url).pathname;

const CELLS = 63; // of a histogram of accuracies

interface Said extends EncodingNumbers {
  readonly signs: string;
  readonly largest: number;
  readonly longest_squared: string;
  readonly bits: number;
}

describe.skipIf(python === "")("beside a Python that has tacit (its path is in TACIT_PYTHON)", () => {
  test.each([1_000, 20_000, 144_528, 661_000])(
    "%i parameters",
    async (parameters) => {
      const folder = mkdtempSync(join(tmpdir(), "tacit-web-"));
      const side = (what: string): string =>
        execFileSync(python, [SIDE, what, folder, String(parameters)], { encoding: "utf8" });
      const read = (name: string): Uint8Array<ArrayBuffer> => Uint8Array.from(readFileSync(join(folder, name)));
      try {
        side("begin");
        const encoding = JSON.parse(readFileSync(join(folder, "encoding.json"), "utf8")) as Said;
        expect([largestOf(encoding), String(longestSquaredOf(encoding)), bitsOf(encoding)]).toEqual([
          encoding.largest,
          encoding.longest_squared,
          encoding.bits,
        ]);
        const updates = [0, 1, 2, 3].map((index) => new Float32Array(read(`update-${index}.bin`).buffer));
        for (const [index, update] of updates.entries()) {
          const words = await encode(LATTICE, update, encoding, fromHex(encoding.signs), new Uint8Array(32).fill(6));
          expect(Buffer.from(words.buffer).equals(read(`words-${index}.bin`))).toBe(true);
        }
        const behind = await encodedReport(LATTICE, updates[0]!, encoding, null, null);
        const words = behind.slice(0, encoding.dimension);
        const settings = await sealedRound(read("settings.bin"));
        writeFileSync(join(folder, "sealed.bin"), new Uint8Array(words.buffer));
        writeFileSync(join(folder, "report.bin"), await sealedReport(LATTICE, settings, words));
        side("end");
        const found = JSON.parse(readFileSync(join(folder, "found.json"), "utf8")) as {
          sum_is_exact: boolean;
          error_over_expected: number;
          squared_norm_over_longest: number;
        };
        expect(found.sum_is_exact).toBe(true);
        expect(Math.abs(found.error_over_expected - 1)).toBeLessThan(4 / Math.sqrt(parameters)); // of a mean of squares
        expect(found.squared_norm_over_longest).toBeLessThanOrEqual(1);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
    300_000,
  );

  test(
    "a sealed histogram: the sum has this device in its cell, and the round is no other's",
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "tacit-web-"));
      const side = (what: string): string => execFileSync(python, [SIDE, what, folder, String(CELLS)], { encoding: "utf8" });
      try {
        side("begin-counts");
        const settings = Uint8Array.from(readFileSync(join(folder, "settings.bin")));
        const round = await sealedRound(settings);
        const [keepers, boxes] = [round.decryptors.map(toHex), round.boxes.map(toHex)];
        const aggregation = { ...PLAIN, kind: "sealed", threshold: round.reportGoal, keepers, boxes, corrupt: round.corrupt };
        const plan = readPlan(planSaid({ kind: "count", aggregation }));
        const task = (cells: number) =>
          readTask(taskSaid({
            plan: toHex(round.plan), round: round.roundIndex, sealed: toHex(settings), asks: { kind: "count", cells: [cells], local_epsilon: null, norms: null },
          }));
        const names: string[] = [];
        const joined = { names: async () => names, join: async (name: string) => void names.push(name) };
        const sealing = sealingOf(LATTICE, joined, calculationsOf(LATTICE));
        await expect(sealing.check(plan, task(CELLS + 1))).rejects.toThrow("other vectors than its reports are");
        const { bytes } = await sealing.check(plan, task(CELLS));
        const report = await sealing.seal(plan, task(CELLS), counted({ cells: [CELLS], local_epsilon: null }, [CELLS - 1], new Draws()));
        expect(report.length).toBe(bytes);
        await expect(sealing.check(plan, task(CELLS))).rejects.toThrow("a second report would spoil it");
        writeFileSync(join(folder, "report.bin"), report);
        side("end-counts");
        const found = JSON.parse(readFileSync(join(folder, "found.json"), "utf8")) as readonly number[];
        expect(found).toEqual([1, 1, 1, ...new Array<number>(CELLS - 4).fill(0), 1]);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
    300_000,
  );
});
