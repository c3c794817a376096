/**
 * What a keyboard shows for what was typed so far: words that go on from it, and words that it may be a slip of.
 *
 * A trie of the vocabulary's words, walked with one row of the edit distance at a node: a neighbouring key costs less
 * than another one, two swapped letters less than two, an apostrophe left out almost nothing. A word scores its log probability less PRICE for each slip.
 * Where no more letters change the slips of the words below a node, these are compared and not walked.
 */

import { SPECIALS } from "../train/ids.ts";

/** A trie in arrays: a node is the prefix of some words, and stands before those that go on from it. */
export interface Lexicon {
  readonly words: readonly string[];
  /** Of each node: its last letter, how many letters it has, and the node behind those that go on from it. */
  readonly letters: Uint32Array;
  readonly depths: Uint32Array;
  readonly next: Uint32Array;
  /** Places of words in the order of their nodes; of each node where its own begin, and at last where all end. */
  readonly places: Uint32Array;
  readonly from: Uint32Array;
  /** Letters of the longest word. */
  readonly longest: number;
}

export interface Shown {
  readonly word: string;
  /** Slips between what was typed and the word's beginning; 0: it goes on from what was typed. */
  readonly slips: number;
  /** Slips between what was typed and the whole word. */
  readonly whole: number;
}

const PRICE = 4.5; // nats a slip
const NEIGHBOUR = 0.6; // of a slip
const APOSTROPHE = 0x27;
const LEFT_APOSTROPHE = 0.1; // out of what was typed
const SWAPPED = 0.7; // two letters in the other order
const ROWS: readonly string[] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];
const ASCII = 128;
/** 1 at ASCII * key + letter, where these two are neighbours. */
const NEIGHBOURS = new Uint8Array(ASCII * ASCII);
ROWS.forEach((row, line) =>
  codesOf(row).forEach((key, at) => {
    const others = [ROWS[line - 1], ROWS[line + 1]].map((other) => other?.slice(Math.max(0, at - 1), at + 2) ?? "");
    for (const letter of codesOf((row[at - 1] ?? "") + (row[at + 1] ?? "") + others.join(""))) NEIGHBOURS[ASCII * key + letter] = 1;
  }),
);

export function lexiconOf(words: readonly string[]): Lexicon {
  const spelled = words.map((word) => word.toLowerCase());
  const sorted = Array.from(words.keys()).sort((a, b) => ((spelled[a] as string) < (spelled[b] as string) ? -1 : spelled[a] === spelled[b] ? a - b : 1));
  const made = { letters: [0], depths: [0], next: [0], places: [] as number[], from: [0] }; // the root
  const open = [0]; // the nodes of the word before, whose words may not all be there yet
  let before: readonly number[] = [];
  const close = (depth: number): void => {
    while (open.length > depth + 1) made.next[open.pop() as number] = made.letters.length;
  };
  for (const place of sorted) {
    const letters = codesOf(spelled[place] as string);
    let same = 0;
    while (same < letters.length && letters[same] === before[same]) same++;
    close(same);
    for (let depth = same; depth < letters.length; depth++) {
      open.push(made.letters.push(letters[depth] as number) - 1);
      made.depths.push(depth + 1);
      made.from.push(made.places.length);
    }
    made.places.push(place);
    before = letters;
  }
  close(-1);
  return {
    words,
    letters: Uint32Array.from(made.letters),
    depths: Uint32Array.from(made.depths),
    next: Uint32Array.from(made.next),
    places: Uint32Array.from(made.places),
    from: Uint32Array.from([...made.from, made.places.length]),
    longest: made.depths.reduce((most, each) => Math.max(most, each)),
  };
}

/** The `count` best words for what was typed, the best first; of "" the likeliest. logs (V,): of the vocabulary's ids. */
export function shownFor(typed: string, lexicon: Lexicon, logs: Float32Array, count: number): readonly Shown[] {
  const { words, letters, depths, next, places, from, longest } = lexicon;
  const keys = codesOf(typed);
  const most = keys.length < 3 ? 0 : keys.length < 6 ? 1 : 2; // slips
  if (keys.length > longest + most / NEIGHBOUR) return []; // no letter too many costs less
  const distances = new Distances(keys, longest);
  const best: { readonly score: number; readonly place: number; readonly slips: number }[] = [];
  let least = -Infinity; // score among the best, where they are enough
  const compare = (begin: number, end: number, slips: number): void => {
    for (let at = begin; at < end; at++) {
      const place = places[at] as number;
      const score = (logs[place + SPECIALS] ?? -Infinity) - PRICE * slips;
      if (best.length === count && score <= least) continue;
      best.splice(best.findLastIndex((each) => each.score >= score) + 1, 0, { score, place, slips });
      if (best.length > count) best.pop();
      least = best.at(-1)?.score ?? Infinity;
    }
  };
  const slipsBefore = new Float64Array(longest + 2).fill(Infinity); // of the prefix before each node on the way here
  for (let node = 0; node < letters.length; ) {
    const depth = depths[node] as number;
    const slips = Math.min(slipsBefore[depth] as number, distances.whole(depth, letters[node] as number));
    slipsBefore[depth + 1] = slips;
    const below = distances.leastBelow(depth);
    const after = below >= slips || below > most ? (next[node] as number) : node + 1;
    if (slips <= most) compare(from[node] as number, from[after] as number, slips);
    node = after;
  }
  const wholeOf = (word: string): number => codesOf(word).reduce((_, letter, at) => distances.whole(at + 1, letter), keys.length);
  const seen = new Set<string>();
  return best
    .map(({ place, slips }) => ({ place, word: cased(words[place] as string, typed), slips }))
    .filter(({ word }) => !seen.has(word) && seen.add(word))
    .map(({ place, word, slips }) => ({ word, slips, whole: wholeOf(words[place] as string) }));
}

/** The word that takes the place of what was typed when it ends; null where it stays as it was typed. */
export function correctionOf(typed: string, shown: readonly Shown[], isKnown: (word: string) => boolean): string | null {
  if (typed.length < 3 || isKnown(typed) || isKnown(typed.toLowerCase())) return null;
  const found = shown.find(({ whole }) => whole <= (typed.length < 6 ? 1 : 2));
  return found === undefined || found.word === typed ? null : found.word;
}

/** Distances of a prefix from each beginning of what was typed: a row of the prefix's every letter, which the next one reads. */
class Distances {
  private readonly typed: readonly number[];
  private readonly width: number;
  private readonly cells: Float64Array;
  private readonly leasts: Float64Array; // of each row
  private readonly prefix: Uint32Array;

  constructor(typed: readonly number[], longest: number) {
    this.typed = typed;
    this.width = typed.length + 1;
    this.cells = new Float64Array((longest + 2) * this.width).fill(Infinity); // with a row before the first: there is no such prefix
    this.leasts = new Float64Array(longest + 2).fill(Infinity);
    this.prefix = new Uint32Array(longest + 1);
    for (let at = 0; at < this.width; at++) this.cells[this.width + at] = at; // of no letter
    this.leasts[1] = 0;
  }

  /** The distance of so many letters, of which this is the last, from all that was typed. The rows before stay. */
  whole(depth: number, letter: number): number {
    const { typed, width, cells } = this;
    const row = (depth + 1) * width;
    if (depth > 0) {
      const before = this.prefix[depth - 1] as number;
      const left = letter === APOSTROPHE ? LEFT_APOSTROPHE : 1;
      this.prefix[depth] = letter;
      let least = (cells[row] = (cells[row - width] as number) + left);
      for (let at = 1; at < width; at++) {
        const key = typed[at - 1] as number;
        const cell = row + at;
        const swap = key === letter ? 0 : key < ASCII && letter < ASCII && NEIGHBOURS[ASCII * key + letter] === 1 ? NEIGHBOUR : 1;
        const twice = key === letter ? NEIGHBOUR : 1; // a letter pressed once too often
        const swapped = key === before && typed[at - 2] === letter ? (cells[cell - 2 * width - 2] as number) + SWAPPED : Infinity;
        const found = Math.min((cells[cell - width - 1] as number) + swap, (cells[cell - width] as number) + left, (cells[cell - 1] as number) + twice, swapped);
        cells[cell] = found;
        if (found < least) least = found;
      }
      this.leasts[depth + 1] = least;
    }
    return cells[row + width - 1] as number;
  }

  /** What no longer prefix that begins so is nearer than, to any beginning of what was typed. */
  leastBelow(depth: number): number {
    return Math.min(this.leasts[depth + 1] as number, (this.leasts[depth] as number) + SWAPPED);
  }
}

/** A word as it would be written behind what was typed: with its capital. */
function cased(word: string, typed: string): string {
  const first = typed[0];
  return first !== undefined && first !== first.toLowerCase() ? (word[0] ?? "").toUpperCase() + word.slice(1) : word;
}

/** Letters, without their capitals. */
function codesOf(text: string): readonly number[] {
  return Array.from(text.toLowerCase(), (letter) => letter.codePointAt(0) as number);
}
