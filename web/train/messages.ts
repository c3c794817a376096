/** What the page and the worker that shows next words say to each other. */

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
