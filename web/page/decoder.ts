/**
 * What a keyboard shows for what was typed so far: words that go on from it, and words that it may be a slip of.
 *
 * A trie of the vocabulary's words, walked with one row of the edit distance at a node: a neighbouring key costs less
 * than another one, two swapped letters less than two, an apostrophe left out almost nothing. A word scores its log probability less PRICE for each slip.
 */

import { SPECIALS } from "../train/ids.ts";

/** A node is the prefix of some words. */
interface Node {
  readonly letter: string;
  readonly children: Node[];
  readonly ends: number[]; // places of the words that are written so, but for capitals
}

export interface Lexicon {
  readonly root: Node;
  readonly words: readonly string[];
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
const APOSTROPHE = 0.1;
const SWAPPED = 0.7; // two letters in the other order
const ROWS: readonly string[] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];
const NEIGHBOURS: ReadonlyMap<string, string> = new Map(
  ROWS.flatMap((row, line) =>
    Array.from(row, (key, at): [string, string] => [
      key,
      (row[at - 1] ?? "") + (row[at + 1] ?? "") + [ROWS[line - 1], ROWS[line + 1]].map((other) => other?.slice(Math.max(0, at - 1), at + 2) ?? "").join(""),
    ]),
  ),
);

export function lexiconOf(words: readonly string[]): Lexicon {
  const root: Node = { letter: "", children: [], ends: [] };
  words.forEach((word, place) => {
    let node = root;
    for (const letter of word.toLowerCase()) {
      let next = node.children.find((each) => each.letter === letter);
      if (next === undefined) {
        next = { letter, children: [], ends: [] };
        node.children.push(next);
      }
      node = next;
    }
    node.ends.push(place);
  });
  return { root, words };
}

/** The `count` best words for what was typed, the best first; of "" the likeliest. logs (V,): of the vocabulary's ids. */
export function shownFor(typed: string, lexicon: Lexicon, logs: Float32Array, count: number): readonly Shown[] {
  const letters = Array.from(typed.toLowerCase());
  const most = letters.length < 3 ? 0 : letters.length < 6 ? 1 : 2; // slips
  const best: { readonly score: number; readonly place: number; readonly slips: number; readonly whole: number }[] = [];
  const walk = (node: Node, row: readonly number[], above: readonly number[], least: number): void => {
    const whole = row.at(-1) as number;
    const slips = Math.min(least, whole);
    for (const place of node.ends) {
      if (slips > most) break;
      const score = (logs[place + SPECIALS] ?? -Infinity) - PRICE * slips;
      if (best.length === count && score <= (best.at(-1)?.score ?? -Infinity)) continue;
      best.splice(best.findLastIndex((each) => each.score >= score) + 1, 0, { score, place, slips, whole });
      if (best.length > count) best.pop();
    }
    if (slips > most && Math.min(...row, ...above) > most) return;
    for (const child of node.children) walk(child, nextRow(row, above, letters, child.letter, node.letter), row, slips);
  };
  walk(lexicon.root, letters.map((_, at) => at + 1).toSpliced(0, 0, 0), [Infinity], Infinity);
  const seen = new Set<string>();
  return best
    .map(({ place, slips, whole }) => ({ word: cased(lexicon.words[place] as string, typed), slips, whole }))
    .filter(({ word }) => !seen.has(word) && seen.add(word));
}

/** The word that takes the place of what was typed when it ends; null where it stays as it was typed. */
export function correctionOf(typed: string, shown: readonly Shown[], isKnown: (word: string) => boolean): string | null {
  if (typed.length < 3 || isKnown(typed) || isKnown(typed.toLowerCase())) return null;
  const found = shown.find(({ whole }) => whole <= (typed.length < 6 ? 1 : 2));
  return found === undefined || found.word === typed ? null : found.word;
}

/** Distances of one prefix more, from each beginning of what was typed. above: the row before the last one. */
function nextRow(
  row: readonly number[],
  above: readonly number[],
  typed: readonly string[],
  letter: string,
  before: string,
): readonly number[] {
  const left = letter === "'" ? APOSTROPHE : 1; // out of what was typed
  const next = [(row[0] as number) + left];
  for (let at = 1; at <= typed.length; at++) {
    const key = typed[at - 1] as string;
    const swap = key === letter ? 0 : NEIGHBOURS.get(key)?.includes(letter) ? NEIGHBOUR : 1;
    const twice = key === before ? NEIGHBOUR : 1; // a letter pressed once too often
    const swapped = key === before && typed[at - 2] === letter ? (above[at - 2] ?? Infinity) + SWAPPED : Infinity;
    next.push(Math.min((row[at - 1] as number) + swap, (row[at] as number) + left, (next[at - 1] as number) + twice, swapped));
  }
  return next;
}

/** A word as it would be written behind what was typed: with its capital. */
function cased(word: string, typed: string): string {
  const first = typed[0];
  return first !== undefined && first !== first.toLowerCase() ? (word[0] ?? "").toUpperCase() + word.slice(1) : word;
}
