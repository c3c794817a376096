/** Encoded updates and sealed reports, as a turn asks for them. */

import { fromHex } from "./bytes.ts";
import type { Plan, RoundTask } from "./documents.ts";
import { largestOf } from "./encoding.ts";
import { Refused } from "./errors.ts";
import type { Encoding, Sealing } from "./report.ts";
import { encoderOf, sealerOf, type Shape } from "./seal/sealing.ts";

/** The sealed rounds that the device has reported in, by name: a second report would add its text twice. */
export interface JoinedRounds {
  names(): Promise<readonly string[]>;
  /** Durable before it resolves. */
  join(name: string): Promise<void>;
}

/** compiled: `web/lattice/lattice.wasm`. */
export function encodingOf(compiled: WebAssembly.Module): Encoding {
  const encoder = encoderOf(compiled);
  return {
    check: (encoded, asks) => encoder.check(encoded, asks),
    encode(update, { encoded, loss_bound: bound }, short, value) {
      if (encoded === null) throw new RangeError("a task without an encoding");
      return encoder.encode(update, encoded, short, value === null || bound === null ? null : { value, bound });
    },
  };
}

/** compiled: `web/lattice/lattice.wasm`. Tasks to train alone are sealed. */
export function sealingOf(compiled: WebAssembly.Module, joined: JoinedRounds): Sealing {
  const sealer = sealerOf<Plan, RoundTask>(compiled, shapeOf);
  return {
    check: async (plan, task) => sealer.check(plan, task, await joined.names()),
    seal: async (plan, task, words) => {
      const { name } = await sealer.check(plan, task, await joined.names());
      await joined.join(name);
      return sealer.seal(plan, task, words);
    },
  };
}

function shapeOf(_plan: Plan, { asks }: RoundTask): Shape {
  if (asks.kind !== "train" || asks.encoded === null) throw new Refused("this device seals encoded updates alone.");
  return { length: asks.encoded.length, largest: 2 * largestOf(asks.encoded), signs: fromHex(asks.encoded.signs) };
}
