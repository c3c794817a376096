/** What a task asks whose report is counts: everything that can be known of it without text, and its answer. */

import type { Split } from "../core/split.ts";
import type { Vocabulary } from "../train/vocabulary.ts";
import type { Draws } from "./draws.ts";
import type { OwnText } from "./typed_text.ts";

type Bytes = Uint8Array<ArrayBuffer>;

export interface Question {
  /** Throws: Refused for a content that is not the one which the plan speaks of. */
  check(content: Uint8Array): Promise<void>;
  /** The report (length,) of a device that has nothing to say, randomised as every other. */
  nothing(draws: Draws): Uint32Array;
  /** The report (length,). content: one that `check` passed. Throws: anything. */
  answer(own: OwnText, content: Uint8Array, draws: Draws): Promise<Uint32Array>;
}

/** The exported network that a device has the code of. */
export interface Network {
  /** Its kind and settings, as recipes have them. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly parameters: number;
  readonly step: Bytes;
  readonly train: Bytes;
}

/** What a device brings to every question. */
export interface Known {
  readonly vocabulary: Vocabulary;
  /** null: the export has no step of training, whose order the numbers of a model are in. */
  readonly network: Network | null;
  readonly split: Split | null;
}
