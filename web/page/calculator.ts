/** The calculations of a turn, in a worker: typing goes on while a report is made. */

import type { RoundTask, Plan, Train } from "../core/documents.ts";
import type { Calculations } from "../core/sealing.ts";
import type { Calculated, FromReporter, ToReporter } from "../answers/messages.ts";
import type { Network } from "../answers/question.ts";
import type { OwnText } from "../answers/typed_text.ts";
import { scriptAddress } from "./addresses.ts";

/**
 * One calculation at a time, each in a worker of its own that ends with its answer: keys, masks and what was read of text
 * go with it. So every turn of a task starts as many workers, whatever was typed. One that took too long is ended by the next.
 */
export class Calculator implements Calculations {
  private readonly lattice: WebAssembly.Module;
  private running: Worker | null = null;

  /** lattice: `web/lattice/lattice.wasm`, compiled. */
  constructor(lattice: WebAssembly.Module) {
    this.lattice = lattice;
  }

  encode(update: Float32Array, asks: Train, short: boolean | null, boundedLoss: number | null): Promise<Uint32Array> {
    return this.ask({ kind: "encode", lattice: this.lattice, update, asks, short, boundedLoss }, [update.buffer as ArrayBuffer]);
  }

  seal(plan: Plan, task: RoundTask, words: Uint32Array): Promise<Uint8Array<ArrayBuffer>> {
    return this.ask({ kind: "seal", lattice: this.lattice, plan, task, words }, [words.buffer as ArrayBuffer]);
  }

  /** model: where training begins; it is handed over, and is empty here from then on. */
  train(network: Network, model: Float32Array<ArrayBuffer>, own: OwnText, client: Train["client"]): Promise<Calculated["train"]> {
    return this.ask({ kind: "train", lattice: this.lattice, network, model, own, client }, [model.buffer]);
  }

  /** given: what is handed over, and is empty here from then on. Throws: Error with what went wrong there. */
  ask<K extends keyof Calculated>(asks: Extract<ToReporter, { kind: K }>, given: readonly ArrayBuffer[] = []): Promise<Calculated[K]> {
    this.end();
    const worker = new Worker(scriptAddress("report_worker.js"), { type: "module", name: asks.kind });
    this.running = worker;
    return new Promise<Calculated[K]>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<FromReporter>) => {
        if (data.kind === "done") resolve(data.value as Calculated[K]);
        else reject(new Error(data.why));
      };
      worker.onerror = () => reject(new Error("the calculation could not be started."));
      worker.postMessage(asks, [...given]);
    }).finally(() => worker.terminate());
  }

  /** Ends what is still going on; its answer never comes. */
  end(): void {
    this.running?.terminate();
    this.running = null;
  }
}
