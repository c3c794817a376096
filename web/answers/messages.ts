/** What the page and the worker that makes reports say to each other: one calculation, one answer. */

import type { Plan, RoundTask, Train } from "../core/documents.ts";
import type { Asked } from "./answered.ts";
import type { Network } from "./question.ts";
import type { OwnText } from "./typed_text.ts";

type Bytes = Uint8Array<ArrayBuffer>;

export type ToReporter =
  | { readonly kind: "train"; readonly lattice: WebAssembly.Module; readonly network: Network; readonly model: Float32Array<ArrayBuffer>; readonly own: OwnText; readonly client: Train["client"] }
  | { readonly kind: "encode"; readonly lattice: WebAssembly.Module; readonly update: Float32Array; readonly asks: Train; readonly short: boolean | null; readonly boundedLoss: number | null }
  | { readonly kind: "seal"; readonly lattice: WebAssembly.Module; readonly plan: Plan; readonly task: RoundTask; readonly words: Uint32Array }
  | ({ readonly kind: "answer" } & Asked);

/** What comes of each kind of calculation. */
export interface Calculated {
  readonly train: { readonly update: Float32Array<ArrayBuffer>; readonly loss: number };
  readonly encode: Uint32Array;
  readonly seal: Bytes;
  readonly answer: Uint32Array;
}

export type FromReporter =
  | { readonly kind: "done"; readonly value: Calculated[keyof Calculated] }
  | { readonly kind: "failed"; readonly why: string };
