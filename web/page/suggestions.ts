/** What the page suggests behind a sentence's beginning, by the shipped model or by the last round's. */

import { withParameters, type Exported } from "../train/exported.ts";
import { nextWordsOf, type NextWords, type State } from "../train/next_words.ts";
import { lexiconOf, shownFor, type Lexicon, type Shown } from "./decoder.ts";

/** The model as it was shipped, or with the numbers of the last round that this device saw. */
export type Which = "shipped" | "latest";

/**
 * Suggestions in the page's own thread: a word takes less time than to ask another thread, which a frame may keep
 * waiting (docs/browser.md, "What it costs").
 */
export class Suggestions {
  private readonly exported: Exported;
  private readonly lexicon: Lexicon;
  private readonly readings: Record<Which, Reading>;

  /** Throws: CannotWork for a model that this page cannot read. */
  constructor(exported: Exported) {
    this.exported = exported;
    this.lexicon = lexiconOf(exported.vocabulary.words);
    const shipped = new Reading(nextWordsOf(exported.step));
    this.readings = { shipped, latest: shipped };
  }

  /** From here on `latest` is the network with these numbers; as it was where they are of another network. */
  showLatest(model: Float32Array): void {
    const { step, train, parameters } = this.exported;
    if (train === null || model.length !== parameters) return;
    this.readings.latest = new Reading(nextWordsOf(withParameters(step, train, model)));
  }

  /** The `count` best words behind these ids, for what was typed of the next one. */
  shown(ids: readonly number[], typed: string, count: number, which: Which): readonly Shown[] {
    return shownFor(typed, this.lexicon, this.readings[which].logsAfter(ids), count);
  }
}

/** A model, and what it has read so far: the next key goes on from there, or from a word before it. */
class Reading {
  private readonly model: NextWords;
  private ids: readonly number[] = [];
  private states: readonly State[]; // before each id, and after the last
  private logs: Float32Array;

  constructor(model: NextWords) {
    this.model = model;
    this.states = [model.begin()];
    this.logs = new Float32Array(model.size);
  }

  /** The log probabilities (V,) of what comes after these ids. */
  logsAfter(ids: readonly number[]): Float32Array {
    const apart = ids.findIndex((id, at) => this.ids[at] !== id);
    const same = apart < 0 ? ids.length : apart;
    if (same === ids.length && same === this.ids.length) return this.logs;
    // Only the last ids' probabilities are kept: of an earlier place its last id is read again.
    const states = this.states.slice(0, Math.max(1, Math.min(same + 1, ids.length)));
    for (const id of ids.slice(states.length - 1)) {
      const found = this.model.step(states.at(-1) as State, id);
      states.push(found.state);
      this.logs = found.logs;
    }
    this.ids = ids;
    this.states = states;
    return this.logs;
  }
}
