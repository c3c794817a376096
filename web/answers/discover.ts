/** Tasks to discover words: which prefixes, or which of some words, the text has that the vocabulary lacks. */

import type { Discover, Plan, RoundTask } from "../core/documents.ts";
import { Refused, saidBy } from "../core/errors.ts";
import { domainOf } from "../core/report.ts";
import { readVocabulary } from "../train/vocabulary.ts";
import type { Draws } from "./draws.ts";
import type { Question } from "./question.ts";
import { randomizerOf } from "./randomizers.ts";
import { unknownWords } from "./typed_text.ts";

const MOST_SUPPORTED = 2 ** 26; // answers that all reports of a device support together
const NOTHING = -1; // what a word that is no answer counts as
const END = "\n"; // the symbol behind a whole word

/** Throws: Refused for a question that contradicts itself, or takes more than a device does. */
export function discoverQuestion(plan: Plan, task: RoundTask): Question {
  const { asks } = task;
  if (asks.kind !== "discover") throw new Refused(`the task is to ${asks.kind}, and not to discover.`);
  const { question, reports } = asks;
  refuseQuestion(question);
  const domain = domainOf(question);
  const randomizer = randomizerOf(reports.randomizer, domain, reports.local_epsilon);
  if (reports.contributions * randomizer.mostSupported > MOST_SUPPORTED) {
    throw new Refused(`${reports.contributions} reports over ${domain} answers are more than a device draws.`);
  }
  const voted = (typed: ReadonlyMap<string, number>, draws: Draws): Uint32Array => {
    const uniforms = Array.from({ length: reports.contributions }, () => draws.unit());
    const votes = new Uint32Array(domain);
    for (const answer of answersOf(typed, asks, uniforms)) randomizer.vote(answer, draws, votes);
    return votes;
  };
  return {
    async check(content) {
      let known: string;
      try {
        known = (await readVocabulary(new TextDecoder("utf-8", { fatal: true }).decode(content))).sha256;
      } catch (thrown) {
        throw new Refused(`the known words of the task cannot be read: ${saidBy(thrown)}`);
      }
      if (known !== plan.vocabulary) throw new Refused("the task comes with other known words than its plan.");
    },
    nothing: (draws) => voted(new Map(), draws),
    answer: async (own, _content, draws) => voted(unknownWords(own), draws),
  };
}

type Asks = Pick<Discover, "question"> & { readonly reports: Pick<Discover["reports"], "contributions" | "sampler"> };

/**
 * The K answers before they are hidden, (contributions,), padded with "nothing".
 *
 * typed: how often each unknown word was; ties go by code point. uniforms: (K,) in [0, 1), by which K are drawn.
 */
export function answersOf(typed: ReadonlyMap<string, number>, { question, reports }: Asks, uniforms: readonly number[]): readonly number[] {
  const held: { readonly answer: number; count: number }[] = [];
  const places = new Map<number, { count: number }>();
  const answerOf = answering(question);
  for (const word of [...typed.keys()].sort(byCodePoint)) {
    const answer = answerOf(word);
    if (answer === NOTHING) continue;
    const count = typed.get(word) as number;
    const before = question.about === "prefixes" ? places.get(answer) : undefined;
    if (before !== undefined) {
      before.count += count;
      continue;
    }
    const one = { answer, count };
    places.set(answer, one);
    held.push(one);
  }
  const chosen = choose(held.map(({ count }) => count), reports, uniforms).map((place) => held[place]?.answer as number);
  return [...chosen, ...new Array<number>(reports.contributions - chosen.length).fill(domainOf(question) - 1)];
}

/**
 * Which of the things held, with these counts, are reported: at most K places. greedy: the largest counts, ties to the
 * earlier; random: K of them uniformly, by the first K steps of a Fisher-Yates shuffle.
 */
export function choose(counts: readonly number[], { contributions, sampler }: Asks["reports"], uniforms: readonly number[]): readonly number[] {
  const order = counts.map((_, place) => place);
  if (counts.length <= contributions) return order;
  if (sampler === "greedy") return order.toSorted((a, b) => (counts[b] as number) - (counts[a] as number)).slice(0, contributions);
  for (let step = 0; step < contributions; step++) {
    const other = step + Math.trunc((uniforms[step] as number) * (counts.length - step));
    [order[step], order[other]] = [order[other] as number, order[step] as number];
  }
  return order.slice(0, contributions);
}

/** The answer that an unknown word stands for, NOTHING where it stands for none. */
export function answering(question: Discover["question"]): (word: string) => number {
  if (question.about === "words") {
    const places = new Map(question.words.map((word, place) => [word, place]));
    return (word) => places.get(word) ?? question.words.length;
  }
  const symbols = [...Array.from(question.alphabet), END];
  const numbers = new Map(symbols.map((symbol, number) => [symbol, number]));
  const places = new Map(question.prefixes.map((prefix, place) => [prefix, place]));
  const found = new Set(question.found);
  const kept = Array.from(question.prefixes[0] as string).length;
  return (word) => {
    const letters = Array.from(word);
    const place = places.get(letters.slice(0, kept).join(""));
    const may = letters.length > 0 && letters.length < question.depth && letters.every((each) => each !== END && numbers.has(each)) && !found.has(word);
    if (place === undefined || !may) return NOTHING;
    return place * symbols.length + (numbers.get(letters[kept] ?? END) as number);
  };
}

function refuseQuestion(question: Discover["question"]): void {
  const listed = question.about === "words" ? question.words : question.prefixes;
  if (new Set(listed).size < listed.length) throw new Refused(`the ${question.about} of the question are not different from each other.`);
  if (question.about === "words") return;
  const letters = Array.from(question.alphabet);
  const wrong =
    (new Set(question.prefixes.map((each) => Array.from(each).length)).size !== 1 && "its prefixes have several lengths") ||
    (new Set(letters).size < letters.length && "its alphabet has a character twice") ||
    (letters.includes(END) && "its alphabet has the line break, which ends a word") ||
    (letters.some((each) => each.normalize("NFC") !== each) && "its alphabet has a character that no composed text has");
  if (wrong) throw new Refused(`the question cannot be answered: ${wrong}.`);
}

function byCodePoint(a: string, b: string): number {
  const [left, right] = [Array.from(a), Array.from(b)];
  for (let place = 0; place < Math.min(left.length, right.length); place++) {
    const apart = ((left[place] as string).codePointAt(0) as number) - ((right[place] as string).codePointAt(0) as number);
    if (apart !== 0) return apart;
  }
  return left.length - right.length;
}
