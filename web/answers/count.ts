/** Tasks to count: statistics of the text, in cells of histograms, or as whole numbers in the cells of sums. */

import { sha256, toHex } from "../core/bytes.ts";
import type { Count, Plan, RoundTask } from "../core/documents.ts";
import { Refused } from "../core/errors.ts";
import { Section } from "../core/recipe.ts";
import { OOV, SPECIALS } from "../train/ids.ts";
import { idOf, type Vocabulary } from "../train/vocabulary.ts";
import { cellOf, checkedCuts, counted, noReport, refuseOthers, type Histogram } from "./histograms.ts";
import type { Known, Question } from "./question.ts";
import { sentencesIn, type Sentence } from "./typed_text.ts";

const MOST_NORM = 2 ** 16; // of one sum's numbers
const LONGEST = 3; // words of a listed n-gram

/** Throws: Refused where plan and task ask for different things, or for what this device does not know. */
export function countQuestion(plan: Plan, task: RoundTask, { vocabulary }: Known): Question {
  const { asks } = task;
  if (asks.kind !== "count") throw new Refused(`the task is to ${asks.kind}, and not to count.`);
  const settings = Section.of(plan.recipe).required("settings");
  const [statistics, sums] = [settings.sections("statistics"), settings.sections("sums")];
  if ((statistics === null) === (sums === null)) throw new Refused("the plan's recipe names neither statistics nor sums, or both.");
  if (sums !== null) return sumsQuestion(sums, asks, vocabulary);
  if (asks.norms !== null) throw new Refused("the task asks for sums, and its plan for histograms.");
  return histogramsQuestion(statistics ?? [], asks);
}

// -- a device in one cell of each histogram

const mean = (sum: number, count: number): number => (count === 0 ? NaN : sum / count);
const idsIn = (text: readonly Sentence[]): readonly number[] => text.flatMap(({ ids }) => ids);

/** What each statistic is of a text; NaN where there is too little of it. */
const STATISTICS: Readonly<Record<string, (text: readonly Sentence[]) => number>> = {
  words: (text) => idsIn(text).length,
  sentences: (text) => text.length,
  sentence_words: (text) => mean(idsIn(text).length, text.length),
  different_words: (text) => new Set(idsIn(text).filter((id) => id !== OOV)).size,
  unknown_share: (text) => mean(idsIn(text).filter((id) => id === OOV).length, idsIn(text).length),
};

function histogramsQuestion(said: readonly Section[], asks: Count): Question {
  const statistics = said.map(statisticOf);
  const names = statistics.map(({ statistic, by }) => `${statistic} by ${by ?? ""}`);
  if (names.length === 0 || new Set(names).size < names.length) throw new Refused("the plan's recipe names no statistic, or one twice.");
  refuseOthers(asks, statistics.map(({ histogram }) => histogram));
  return {
    check: async () => undefined, // the content says nothing
    nothing: (draws) => counted(asks, noReport(asks), draws),
    answer: async (own, _content, draws) => {
      const text = sentencesIn(own);
      const valueOf = (name: string | null): number => (name === null ? 0 : (STATISTICS[name] as (text: readonly Sentence[]) => number)(text));
      return counted(asks, statistics.map(({ statistic, by, histogram }) => cellOf(histogram, valueOf(by), valueOf(statistic))), draws);
    },
  };
}

interface Statistic {
  readonly statistic: string;
  readonly by: string | null;
  readonly histogram: Histogram;
}

function statisticOf(said: Section): Statistic {
  said.refuseOthers(["statistic", "cuts", "by", "slices"]);
  const [statistic, by] = [said.text("statistic") ?? "", said.text("by")];
  for (const name of by === null ? [statistic] : [statistic, by]) {
    if (!Object.hasOwn(STATISTICS, name)) throw new Refused(`the statistic '${name}' is unknown to this device.`);
  }
  const [bins, slices] = [said.numbers("cuts") ?? [], said.numbers("slices") ?? []];
  if (bins.length === 0 || (by === null) !== (slices.length === 0)) throw new Refused(`${statistic} has no cuts, or slices of nothing.`);
  return { statistic, by, histogram: { slices: checkedCuts(slices, by ?? ""), bins: checkedCuts(bins, statistic) } };
}

// -- whole numbers in many cells

/** One sum: its cells, the norm of a device's numbers, and how often each cell occurs in a text, in units. */
interface Sum {
  readonly name: string;
  readonly cells: number;
  readonly norm: number;
  /** cells: those of a list, where the sum is of one. */
  counted(text: readonly Sentence[], list: CellList | null): ReadonlyMap<number, number>;
}

function sumsQuestion(said: readonly Section[], asks: Count, vocabulary: Vocabulary): Question {
  const listed = said.map((each) => (each.text("statistic") === "cells" ? listOf(each) : null));
  const sums = said.map((each, place) => listed[place] ?? sumOf(each));
  if (sums.length === 0 || new Set(sums.map(({ name }) => name)).size < sums.length) throw new Refused("the plan's recipe names no sum, or one twice.");
  const norms = asks.norms ?? [];
  const same = asks.cells.length === sums.length && norms.length === sums.length && sums.every(({ cells, norm }, place) => cells === asks.cells[place] && norm === norms[place]);
  if (!same || asks.local_epsilon !== null) throw new Refused("the task asks for other sums than its plan.");
  const asked = listed.find((each) => each !== null) ?? null;
  const all = asks.cells.reduce((sum, each) => sum + each, 0);
  return {
    check: async (content) => void (asked === null ? null : await cellsIn(content, asked, vocabulary)),
    nothing: () => new Uint32Array(all),
    answer: async (own, content) => {
      const [text, list] = [sentencesIn(own), asked === null ? null : await cellsIn(content, asked, vocabulary)];
      const words = new Uint32Array(all);
      let start = 0;
      for (const sum of sums) {
        const counts = sum.counted(text, list);
        const within = clippedCounts([...counts.values()], sum.norm);
        [...counts.keys()].forEach((cell, place) => (words[start + cell] = within[place] as number));
        start += sum.cells;
      }
      return words;
    },
  };
}

const SUMS: Readonly<Record<string, number>> = { word_counts: 1, word_pairs: 2 }; // words of a cell

function sumOf(said: Section): Sum {
  said.refuseOthers(["statistic", "words", "norm", "unit"]);
  const name = said.text("statistic") ?? "";
  const length = Object.hasOwn(SUMS, name) ? SUMS[name] : undefined;
  if (length === undefined) throw new Refused(`the sum '${name}' is unknown to this device.`);
  const [words, norm, unit] = [said.whole("words") ?? 0, said.number("norm") ?? 0, said.whole("unit") ?? 1];
  if (words < 2 || !(unit >= 1 && unit <= MOST_NORM)) throw new Refused(`the sum ${name} has ${words} words in units of ${unit}.`);
  const known = (id: number): boolean => id >= SPECIALS && id < SPECIALS + words;
  return {
    name,
    cells: words ** length,
    norm: checkedNorm(norm * unit, name),
    counted: (text) => {
      const counts = new Map<number, number>();
      for (const ngram of ngramsOf(text, length)) {
        if (ngram.every(known)) add(counts, ngram.reduce((cell, id) => cell * words + id - SPECIALS, 0), unit);
      }
      return counts;
    },
  };
}

function checkedNorm(norm: number, name: string): number {
  if (!(norm >= 1 && norm <= MOST_NORM)) throw new Refused(`the norm ${norm} of ${name} is not from 1 to ${MOST_NORM}.`);
  return norm;
}

/** The words that follow each other in a sentence, so many at a time. */
function* ngramsOf(text: readonly Sentence[], length: number): Generator<readonly number[]> {
  for (const { ids } of text) for (let end = length; end <= ids.length; end++) yield ids.slice(end - length, end);
}

function add(counts: Map<number, number>, cell: number, unit: number): void {
  counts.set(cell, (counts.get(cell) ?? 0) + unit);
}

/**
 * Whole numbers (n,) times min(1, norm / their L2 norm), rounded down: in integers, so never beyond the norm.
 *
 * floor(c N / sqrt(S)) is the whole root of floor(c^2 N^2 / S), where S is the sum of all c^2.
 */
export function clippedCounts(counts: readonly number[], norm: number): readonly number[] {
  let denominator = 1;
  while (!Number.isInteger(norm * denominator)) denominator *= 2; // a binary fraction, as every float is
  const [above, below] = [BigInt(norm * denominator) ** 2n, BigInt(denominator) ** 2n];
  const squared = counts.reduce((sum, each) => sum + BigInt(each) ** 2n, 0n);
  if (squared * below <= above) return counts;
  const shorter = new Map<number, number>();
  for (const each of new Set(counts)) shorter.set(each, Number(wholeRoot((BigInt(each) ** 2n * above) / (below * squared))));
  return counts.map((each) => shorter.get(each) as number);
}

/** The largest whole number whose square is no more (Newton's method from above). */
function wholeRoot(square: bigint): bigint {
  if (square < 2n) return square;
  let root = 1n << BigInt(Math.ceil(square.toString(2).length / 2));
  for (;;) {
    const next = (root + square / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

// -- chosen cells, in a list that comes with the task

interface AskedList extends Sum {
  readonly sha256: string;
}

/** Listed n-grams by their ids: the cell of each, and what one occurrence counts. */
interface CellList {
  readonly once: boolean;
  readonly cells: ReadonlyMap<string, { readonly cell: number; readonly unit: number }>;
  readonly lengths: readonly number[];
}

function listOf(said: Section): AskedList {
  said.refuseOthers(["statistic", "sha256", "cells", "norm", "source"]);
  const [digest, cells, norm] = [said.text("sha256"), said.whole("cells"), said.number("norm")];
  if (digest === null || cells === null || norm === null) throw new Refused("the plan's recipe does not say which list of cells it means.");
  return {
    name: "cells",
    sha256: digest,
    cells,
    norm: checkedNorm(norm, "cells"),
    counted(text, list) {
      if (list === null) throw new RangeError("a list of cells is not at hand");
      const counts = new Map<number, number>();
      for (const length of list.lengths) {
        for (const ngram of ngramsOf(text, length)) {
          const found = list.cells.get(ngram.join(" "));
          if (found !== undefined && !(list.once && counts.has(found.cell))) add(counts, found.cell, found.unit);
        }
      }
      return counts;
    },
  };
}

const HEAD = /^# tacit cells 1\n# norm ([0-9]{1,5})\n(# once\n)?# (public|word list|discovered): [^\n]*\S[^\n]*\n/u;
const CELL = /^([1-9][0-9]{0,4})\t(\S+(?: \S+){0,2})$/u;

/** The list of cells in a content. Throws: Refused where it is not the one of the plan, or has words that nobody's text has. */
async function cellsIn(content: Uint8Array, asked: AskedList, vocabulary: Vocabulary): Promise<CellList> {
  const wrong = (what: string): Refused => new Refused(`the task's list of cells cannot be counted: ${what}.`);
  if (toHex(await sha256(new Uint8Array(content))) !== asked.sha256) throw wrong("it is another than its plan's");
  const text = new TextDecoder().decode(content);
  const head = HEAD.exec(text);
  if (head === null || Number(head[1]) !== asked.norm) throw wrong("it does not begin as one");
  const lines = text.slice(head[0].length).replace(/\n$/u, "").split("\n");
  const cells = new Map<string, { readonly cell: number; readonly unit: number }>();
  const lengths = new Set<number>();
  lines.forEach((line, cell) => {
    const [, unit, ngram] = CELL.exec(line) ?? [];
    if (unit === undefined || ngram === undefined || Number(unit) > MOST_NORM) throw wrong(`its cell ${cell + 1} is none`);
    const ids = ngram.split(" ").map((word) => idOf(vocabulary, word));
    if (ids.includes(OOV)) throw wrong(`cell ${cell + 1} has a word that the vocabulary lacks`);
    cells.set(ids.join(" "), { cell, unit: Number(unit) });
    lengths.add(ids.length);
  });
  if (lines.length !== asked.cells || cells.size !== asked.cells) throw wrong("it has not as many different cells as its plan says");
  return { once: head[2] !== undefined, cells, lengths: [...lengths].filter((length) => length <= LONGEST) };
}
