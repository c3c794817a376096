/** Encoded updates and sealed reports, as a turn asks for them. */

import { fromHex, toHex } from "./bytes.ts";
import type { Plan, RoundTask } from "./documents.ts";
import { encodedReport, largestOf, lengthOf, refuseEncoding } from "./encoding.ts";
import { Refused } from "./errors.ts";
import type { Encoding, Sealing } from "./report.ts";
import { sealedReport } from "./seal/report.ts";
import { refuseRound, reportBytesOf, sealedRound, seedOf, settingsBytes, type SealedRound } from "./seal/round.ts";

/** The sealed rounds that the device has reported in, by name: a second report would add its text twice. */
export interface JoinedRounds {
  names(): Promise<readonly string[]>;
  /** Durable before it resolves. */
  join(name: string): Promise<void>;
}

/** compiled: `web/lattice/lattice.wasm`. */
export function encodingOf(compiled: WebAssembly.Module): Encoding {
  return {
    check(encoded, asks) {
      refuseEncoding(encoded);
      const length = lengthOf(encoded, asks.clip_estimate !== null, asks.loss_bound !== null);
      if (length !== encoded.length) throw new Refused(`the task wants reports of ${encoded.length} words, and its encoding makes ${length}.`);
    },
    encode(update, { encoded, loss_bound: bound }, short, value) {
      if (encoded === null) throw new RangeError("a task without an encoding");
      return encodedReport(compiled, update, encoded, short, value === null || bound === null ? null : { value, bound });
    },
  };
}

/** compiled: `web/lattice/lattice.wasm`. Tasks to train alone are sealed. */
export function sealingOf(compiled: WebAssembly.Module, joined: JoinedRounds): Sealing {
  const checked = async (plan: Plan, task: RoundTask): Promise<SealedRound> => {
    if (task.asks.kind !== "train" || task.asks.encoded === null) throw new Refused("this device seals encoded updates alone.");
    const round = await sealedRound(settingsBytes(task.sealed ?? ""));
    const { encoded } = task.asks;
    const { threshold, keepers, boxes, corrupt, contributors } = plan.aggregation;
    refuseRound(round, {
      threshold,
      decryptors: keepers,
      boxes,
      corrupt,
      contributors,
      plan: task.plan,
      round: task.round,
      dimension: encoded.length,
      largest: 2 * largestOf(encoded),
      seed: contributors.length === 0 ? null : await seedOf(task.plan, task.round, task.task, fromHex(encoded.signs)),
      joined: await joined.names(),
    });
    return round;
  };
  return {
    check: async (plan, task) => {
      const round = await checked(plan, task);
      return { series: toHex(round.series), bytes: reportBytesOf(round).report };
    },
    seal: async (plan, task, words) => {
      const round = await checked(plan, task);
      await joined.join(toHex(round.name));
      return sealedReport(compiled, round, words);
    },
  };
}
