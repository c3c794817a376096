/** How a device seals the reports of its tasks, and encodes its updates: what a turn is given. */

import { encodedReport, lengthOf, refuseEncoding, type BoundedLoss, type EncodingNumbers } from "../encoding.ts";
import { toHex } from "../bytes.ts";
import { Refused } from "../errors.ts";
import { sealedReport } from "./report.ts";
import { refuseRound, reportBytesOf, sealedRound, seedOf, settingsBytes, type SealedRound } from "./round.ts";
import { random, type Draw } from "./secrets.ts";

/** What a plan says of its sealed sums. */
export interface SealedPlan {
  readonly aggregation: {
    readonly threshold: number;
    readonly keepers: readonly string[];
    readonly boxes: readonly string[];
    readonly corrupt: number;
    readonly contributors: readonly string[];
  };
}

/** Which attempt a task is. */
export interface SealedTask {
  readonly plan: string;
  readonly round: number;
  readonly task: string;
  readonly sealed: string | null;
}

/** What the reports of a task are, as the device computes it from plan and task. */
export interface Shape {
  readonly length: number; // words
  readonly largest: number; // of a word: 2 C_inf of an encoded update, K of counts
  readonly signs: Uint8Array; // 32 bytes of an encoding, or none
}

/** Of a task's round. */
export interface CheckedRound {
  readonly name: string; // the device makes one report for each
  readonly series: string; // of attempts that are one participation
  readonly bytes: number; // of every report
}

/** Sealing of one kind of plans and tasks. */
export interface Sealer<Plan, Task> {
  /**
   * joined: names of the rounds that the device has reported in.
   *
   * Throws: Refused, Malformed for settings that break the plan.
   */
  check(plan: Plan, task: Task, joined?: readonly string[]): Promise<CheckedRound>;
  /** Throws: as `check`, and Refused for words that the round does not sum. */
  seal(plan: Plan, task: Task, words: Uint32Array): Promise<Uint8Array<ArrayBuffer>>;
}

/** compiled: `web/lattice/lattice.wasm`. */
export function sealerOf<Plan extends SealedPlan, Task extends SealedTask>(
  compiled: WebAssembly.Module,
  shapeOf: (plan: Plan, task: Task) => Shape,
  draw: Draw = random,
): Sealer<Plan, Task> {
  const checked = async (plan: Plan, task: Task, joined: readonly string[]): Promise<SealedRound> => {
    if (task.sealed === null) throw new Refused("the task does not seal reports, and its plan does.");
    const round = await sealedRound(settingsBytes(task.sealed));
    const { threshold, keepers, boxes, corrupt, contributors } = plan.aggregation;
    const { length, largest, signs } = shapeOf(plan, task);
    const seed = contributors.length > 0 ? await seedOf(task.plan, task.round, task.task, signs) : null;
    const said = { threshold, decryptors: keepers, boxes, corrupt, contributors, plan: task.plan, round: task.round };
    refuseRound(round, { ...said, dimension: length, largest, seed, joined });
    return round;
  };
  return {
    check: async (plan, task, joined = []) => {
      const round = await checked(plan, task, joined);
      return { name: toHex(round.name), series: toHex(round.series), bytes: reportBytesOf(round).report };
    },
    seal: async (plan, task, words) => sealedReport(compiled, await checked(plan, task, []), words, draw),
  };
}

/** The document of an encoding in a task. */
export type EncodedTask = EncodingNumbers & { readonly signs: string; readonly length: number };

/** How updates become integers. */
export interface Encoder {
  /** Throws: Refused for an encoding that is none, or of another length than its reports. */
  check(
    encoded: EncodedTask,
    asks: { readonly clip_estimate: number | null; readonly loss_bound: number | null },
  ): void;
  /** (length,). Throws: RangeError for an update that is not finite or of another length. */
  encode(
    update: Float32Array,
    encoded: EncodedTask,
    short: boolean | null,
    loss: BoundedLoss | null,
  ): Promise<Uint32Array<ArrayBuffer>>;
}

/** compiled: `web/lattice/lattice.wasm`. */
export function encoderOf(compiled: WebAssembly.Module, draw: Draw = random): Encoder {
  return {
    check: (encoded, { clip_estimate, loss_bound }) => {
      refuseEncoding(encoded);
      const length = lengthOf(encoded, clip_estimate !== null, loss_bound !== null);
      if (encoded.length !== length)
        throw new Refused(`the encoding's reports have ${length} words, and the task says ${encoded.length}.`);
    },
    encode: (update, encoded, short, loss) => encodedReport(compiled, update, encoded, short, loss, draw),
  };
}
