/** What the page and its two workers say to each other. */

import type { Client } from "./trainer.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** To the worker that shows next words. */
export type ToReader =
  | { readonly kind: "open"; readonly runtime: string; readonly step: Bytes; readonly latest: Bytes | null; readonly words: readonly string[] }
  | { readonly kind: "latest"; readonly step: Bytes }
  | { readonly kind: "show"; readonly id: number; readonly ids: readonly number[]; readonly typed: string; readonly count: number; readonly model: Which };

/** The model as it was shipped, or with the numbers of the last round that this device saw. */
export type Which = "shipped" | "latest";

export type FromReader =
  | { readonly kind: "ready" }
  | { readonly kind: "shown"; readonly id: number; readonly shown: readonly { readonly word: string; readonly slips: number; readonly whole: number }[]; readonly ms: number }
  | { readonly kind: "failed"; readonly why: string };

/** To the worker that trains, which does one update and is ended. */
export interface ToTrainer {
  readonly runtime: string;
  readonly train: Bytes;
  readonly model: Float32Array<ArrayBuffer>;
  readonly sentences: readonly (readonly number[])[];
  readonly client: Client;
}

export type FromTrainer =
  | { readonly kind: "trained"; readonly update: Float32Array<ArrayBuffer>; readonly loss: number }
  | { readonly kind: "failed"; readonly why: string };
