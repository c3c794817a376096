/** Encoded updates and sealed reports, as a turn asks for them. */

import { fromHex } from "./bytes.ts";
import type { Plan, RoundTask, Train } from "./documents.ts";
import { largestOf } from "./encoding.ts";
import { Refused } from "./errors.ts";
import { countsOf, type Encoding, type Sealing } from "./report.ts";
import { encoderOf, sealerOf, type Sealer, type Shape } from "./seal/sealing.ts";

/** The sealed rounds that the device has reported in, by name: a second report would add its text twice. */
export interface JoinedRounds {
  names(): Promise<readonly string[]>;
  /** Durable before it resolves. */
  join(name: string): Promise<void>;
}

/** What takes long of a report. Whatever is given to it is its own: a page hands it over to a worker. */
export interface Calculations {
  /** Throws: as `Encoding.encode`. */
  encode(update: Float32Array, asks: Train, short: boolean | null, boundedLoss: number | null): Promise<Uint32Array>;
  /** Throws: as `Sealing.seal`. */
  seal(plan: Plan, task: RoundTask, words: Uint32Array): Promise<Uint8Array<ArrayBuffer>>;
}

/** In this thread. compiled: `web/lattice/lattice.wasm`. */
export function calculationsOf(compiled: WebAssembly.Module): Calculations {
  return {
    async encode(update, { encoded, loss_bound: bound }, short, value) {
      if (encoded === null) throw new RangeError("a task without an encoding");
      return encoderOf(compiled).encode(update, encoded, short, value === null || bound === null ? null : { value, bound });
    },
    seal: (plan, task, words) => sealer(compiled).seal(plan, task, words),
  };
}

/** compiled: `web/lattice/lattice.wasm`. */
export function encodingOf(compiled: WebAssembly.Module, calculations: Calculations): Encoding {
  const { check } = encoderOf(compiled);
  return { check: (encoded, asks) => check(encoded, asks), encode: (...given) => calculations.encode(...given) };
}

/** compiled: `web/lattice/lattice.wasm`. */
export function sealingOf(compiled: WebAssembly.Module, joined: JoinedRounds, calculations: Calculations): Sealing {
  const { check } = sealer(compiled);
  return {
    check: async (plan, task) => check(plan, task, await joined.names()),
    seal: async (plan, task, words) => {
      const { name } = await check(plan, task, await joined.names());
      await joined.join(name);
      return calculations.seal(plan, task, words);
    },
  };
}

function sealer(compiled: WebAssembly.Module): Sealer<Plan, RoundTask> {
  return sealerOf<Plan, RoundTask>(compiled, shapeOf);
}

function shapeOf(_plan: Plan, { asks }: RoundTask): Shape {
  if (asks.kind !== "train") {
    const { length, most } = countsOf(asks);
    return { length, largest: most, signs: new Uint8Array() };
  }
  if (asks.encoded === null) throw new Refused("this device seals encoded updates and counts alone.");
  return { length: asks.encoded.length, largest: 2 * largestOf(asks.encoded), signs: fromHex(asks.encoded.signs) };
}
