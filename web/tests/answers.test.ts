/** What a device answers to tasks whose reports are counts: Python's numbers, and the randomizers' own distributions. */

import { readFileSync } from "node:fs";

import { beforeAll, describe, expect, test } from "vitest";

import { answered, questionOf } from "../answers/answered.ts";
import { clippedCounts } from "../answers/count.ts";
import { answering, answersOf, choose } from "../answers/discover.ts";
import { Draws } from "../answers/draws.ts";
import { counted } from "../answers/histograms.ts";
import type { Known, Question } from "../answers/question.ts";
import { pointsOf, randomizerOf, spaceFor, supportOrthogonal, vectorOf } from "../answers/randomizers.ts";
import { sentencesIn, trainable, unknownWords, type Message, type OwnText } from "../answers/typed_text.ts";
import { readPlan, readTask, type Discover, type Plan, type RoundTask } from "../core/documents.ts";
import { Refused } from "../core/errors.ts";
import { countsOf, domainOf } from "../core/report.ts";
import type { Draw } from "../core/seal/secrets.ts";
import { parted, readSplit } from "../core/split.ts";
import { loadExported, type Exported } from "../train/exported.ts";
import { planSaid, taskSaid } from "./plans.ts";
import { seeded } from "./seeded.ts";

interface Case {
  readonly name: string;
  readonly recipe: string;
  readonly asks: Readonly<Record<string, unknown>> & { readonly kind: string };
  readonly content: string;
  readonly words: readonly number[];
}
interface Expected {
  readonly texts: readonly Message[];
  readonly times: readonly number[];
  readonly splits: Readonly<Record<string, readonly number[] | null>>;
  readonly cases: readonly Case[];
}
interface Randomizers {
  readonly tolerance: number;
  readonly cases: readonly { readonly name: string; readonly randomizer: string; readonly domain: number; readonly epsilon: number; readonly p: number; readonly q: number; readonly most_supported: number; readonly order?: number; readonly length?: number; readonly points?: number }[];
  readonly lies: readonly { readonly name: string; readonly probability: number; readonly lies: readonly (readonly [string, boolean])[] }[];
  readonly votes: readonly { readonly name: string; readonly randomizer: string; readonly domain: number; readonly epsilon: number; readonly reports: readonly number[]; readonly votes: readonly number[] }[];
  readonly points: readonly { readonly name: string; readonly order: number; readonly length: number; readonly vectors: readonly (readonly number[])[] }[];
  readonly answers: readonly { readonly name: string; readonly question: Discover["question"]; readonly sampler: "random" | "greedy"; readonly contributions: number; readonly uniforms: readonly number[]; readonly typed: Readonly<Record<string, number>>; readonly domain: number; readonly each: Readonly<Record<string, number>>; readonly answers: readonly number[] }[];
  readonly choices: readonly { readonly name: string; readonly sampler: "random" | "greedy"; readonly contributions: number; readonly counts: readonly number[]; readonly uniforms: readonly number[]; readonly chosen: readonly number[] }[];
}

const fixture = (name: string): string => readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8");
const python = JSON.parse(fixture("answers.json")) as Expected;
const vectors = JSON.parse(readFileSync(new URL("../../tests/vectors/randomizers.json", import.meta.url), "utf8")) as Randomizers;

let exported: Exported;
let known: Known;

beforeAll(async () => {
  exported = await loadExported(async (name) => new Uint8Array(readFileSync(new URL(`fixtures/training/${name}`, import.meta.url))));
  const { network: settings, parameters, step, train } = exported;
  known = { vocabulary: exported.vocabulary, split: readSplit("time:0.5"), network: { settings, parameters, step, train: train as Uint8Array<ArrayBuffer> } };
});

const text = (messages: readonly Message[]): OwnText => ({ messages, vocabulary: exported.vocabulary, split: known.split });
const HISTOGRAMS = { kind: "histograms", zcdp: 1, report_goal: 3, rounds: 1, max_participations: 1, epsilon: 9, delta: 1e-5, histograms: [1], noise_multiplier: 1 };

/** A plan and its task of a case. */
function asked({ recipe, asks }: Pick<Case, "recipe" | "asks">): { readonly plan: Plan; readonly task: RoundTask } {
  return {
    plan: readPlan(planSaid({ kind: asks.kind, recipe, privacy: HISTOGRAMS, vocabulary: exported.vocabulary.sha256 })),
    task: readTask(taskSaid({ asks })),
  };
}

/** Bytes from a seed: a draw that can be repeated. */
function seededDraw(seed: number): Draw {
  const { below } = seeded(seed);
  return (size) => Uint8Array.from({ length: size }, () => below(256));
}

/** As many standard deviations as an honest count differs by in one of some billion tests. */
const FAR = 6;

describe("the same text, the same counts as Python", () => {
  test("sentences, and where each split parts them", () => {
    expect(sentencesIn(text(python.texts)).map(({ at }) => at)).toEqual(python.times);
    for (const [said, rows] of Object.entries(python.splits)) {
      const found = parted(readSplit(said), python.times);
      expect(found?.test ?? null, said).toEqual(rows);
      if (found !== null) expect([...found.train, ...found.test].sort((a, b) => a - b)).toEqual(python.times.map((_, row) => row));
    }
  });

  test.each(python.cases)("$name", async (each) => {
    const { plan, task } = asked(each);
    const content = new Uint8Array(Buffer.from(each.content, "base64"));
    await questionOf(plan, task, known).check(content);
    const own = text(each.name.includes("no text") ? [] : python.texts);
    const found = await answered({ plan, task, content, known, own });
    expect([...found]).toEqual(each.words);
    if (task.asks.kind !== "train") expect(found.length).toBe(countsOf(task.asks).length);
  });
});

test("a split that is none is refused by its forms", () => {
  for (const wrong of ["time:0", "time:1", "count:0.5", "last:0", "date:2004-02-31", "date:today", "newest:3", "time", ""]) {
    expect(() => readSplit(wrong), wrong).toThrow(/time:0.8, count:100, date:2004-06-01 or last:20/);
  }
});

test("whole numbers are scaled down exactly, and never beyond their norm", () => {
  const { below } = seeded(11);
  for (let tried = 0; tried < 300; tried++) {
    const counts = Array.from({ length: 1 + below(40) }, () => below(5000));
    const norm = 1 + below(4000) + below(1000) / 1000;
    const found = clippedCounts(counts, norm);
    expect(found.reduce((sum, each) => sum + each * each, 0)).toBeLessThanOrEqual(norm * norm);
    const length = Math.hypot(...counts);
    const factor = length <= norm ? 1 : norm / length;
    found.forEach((each, place) => expect(Math.abs(each - (counts[place] as number) * factor)).toBeLessThan(1 + 1e-6));
  }
  expect(clippedCounts([3, 4], 5)).toEqual([3, 4]);
  expect(clippedCounts([3, 4], 4.999)).toEqual([2, 3]);
});

describe("randomizers", () => {
  test.each(vectors.cases)("$name", ({ randomizer, domain, epsilon, p, q, most_supported, ...space }) => {
    const made = randomizerOf(randomizer, domain, epsilon);
    expect(Math.abs(1 - made.lie - p)).toBeLessThanOrEqual(vectors.tolerance * p);
    expect(Math.abs(made.q - q)).toBeLessThanOrEqual(vectors.tolerance * q);
    expect(made.mostSupported).toBe(most_supported);
    if (space.order === undefined) return;
    const found = spaceFor(domain, epsilon);
    expect([found.order, found.length, pointsOf(found)]).toEqual([space.order, space.length, space.points]);
  });

  test.each(vectors.lies)("$name", ({ probability, lies }) => {
    for (const [word, lie] of lies) {
      const bytes = new Uint8Array(2 ** 14);
      new DataView(bytes.buffer).setBigUint64(0, BigInt(word), true);
      expect(new Draws(() => bytes).happens(probability), word).toBe(lie);
    }
  });

  test.each(vectors.points)("$name", ({ order, length, vectors: wanted }) => {
    wanted.forEach((each, point) => expect(vectorOf({ order, length }, point)).toEqual(each));
  });

  test.each(vectors.votes.filter(({ randomizer }) => randomizer === "projective-geometry"))("$name", ({ domain, epsilon, reports, votes }) => {
    const [space, found] = [spaceFor(domain, epsilon), new Uint32Array(domain)];
    for (const point of reports) supportOrthogonal(space, vectorOf(space, point), found);
    expect([...found]).toEqual(votes);
  });

  const RANDOM = [["subset-selection", 30, 2], ["subset-selection", 5, 1], ["projective-geometry", 30, 2], ["projective-geometry", 57, 2], ["k-ary", 12, 1.5]] as const;
  test.each(RANDOM)("%s over %i values supports the own one with probability p, any other with q, and no wrong epsilon passes", (name, domain, epsilon) => {
    const [draws, votes, reports, own] = [new Draws(seededDraw(5)), new Uint32Array(domain), 12_000, 3];
    const made = randomizerOf(name, domain, epsilon);
    for (let report = 0; report < reports; report++) made.vote(own, draws, votes);
    const apart = (value: number, probability: number): number =>
      Math.abs((votes[value] as number) - reports * probability) / Math.sqrt(reports * probability * (1 - probability));
    expect(apart(own, 1 - made.lie)).toBeLessThan(FAR);
    votes.forEach((_, value) => value !== own && expect(apart(value, made.q), `value ${value}`).toBeLessThan(FAR));
    for (const wrong of [epsilon * 0.8, epsilon * 1.25]) {
      const other = randomizerOf(name, domain, wrong);
      const far = Math.max(apart(own, 1 - other.lie), ...Array.from(votes.keys(), (value) => (value === own ? 0 : apart(value, other.q))));
      expect(far, `epsilon ${wrong}`).toBeGreaterThan(FAR);
    }
  });

  test("a report of subset selection names as many values, whatever its own is", () => {
    const [draws, made] = [new Draws(seededDraw(6)), randomizerOf("subset-selection", 30, 2)];
    for (let report = 0; report < 300; report++) {
      const votes = new Uint32Array(30);
      made.vote(report % 30, draws, votes);
      expect([...votes].sort()).toEqual([...new Array<number>(26).fill(0), 1, 1, 1, 1]);
    }
  });

  test("an unknown name, an epsilon and a domain that hide nothing are refused", () => {
    for (const [name, domain, epsilon] of [["coin", 5, 1], ["constructor", 5, 1], ["k-ary", 1, 1], ["k-ary", 5, 31], ["k-ary", 5, 0], ["k-ary", 2 ** 32, 1], ["projective-geometry", 2 ** 30, 1]] as const) {
      expect(() => randomizerOf(name, domain, epsilon), `${name} ${domain} ${epsilon}`).toThrow(Refused);
    }
  });

  test("a drawn number is uniform below any end", () => {
    const draws = new Draws(seededDraw(7));
    const counts = [0, 0, 0];
    for (let drawn = 0; drawn < 9000; drawn++) counts[draws.below(3)]!++;
    counts.forEach((count) => expect(Math.abs(count - 3000) / Math.sqrt(2000)).toBeLessThan(FAR));
    const high = Uint8Array.from([255, 255, 255, 255, 7, 0, 0, 0]); // 2^32 - 1 would prefer 0 of 0 .. 2
    expect(new Draws((size) => Uint8Array.from({ length: size }, (_, at) => high[at % 8] as number)).below(3)).toBe(1);
  });
});

describe("words that the vocabulary lacks", () => {
  test.each(vectors.answers)("$name", ({ question, sampler, contributions, uniforms, typed, domain, each, answers }) => {
    const answerOf = answering(question);
    expect(domainOf(question)).toBe(domain);
    for (const [word, wanted] of Object.entries(each)) expect(answerOf(word), word).toBe(wanted);
    expect(answersOf(new Map(Object.entries(typed)), { question, reports: { sampler, contributions } }, uniforms)).toEqual(answers);
  });

  test.each(vectors.choices)("$name", ({ sampler, contributions, counts, uniforms, chosen }) => {
    expect(choose(counts, { sampler, contributions }, uniforms)).toEqual(chosen);
  });

  test("are those of text that training may read, and how often each was typed", () => {
    const own = text(python.texts);
    const read = trainable(own).map(({ at }) => at);
    expect(Math.max(...read)).toBeLessThan(Math.max(...python.times));
    expect(unknownWords({ ...own, split: null })).toEqual(new Map([["Two", 1], ["xylophone", 1], ["hundred", 1], ["thousand", 1]]));
    expect(unknownWords(own)).toEqual(new Map([["Two", 1], ["xylophone", 1]]));
  });

  const RECIPE = "[reports]\nlocal_epsilon = 2.0\ncontributions = 3\n";
  const LISTED = { kind: "discover", question: { about: "words", words: ["xylophone", "zebra"] }, reports: { local_epsilon: 2, contributions: 3, sampler: "random", randomizer: "subset-selection" } };
  const PREFIXES = { ...LISTED, question: { about: "prefixes", prefixes: ["a", "b"], alphabet: "abc", depth: 5, found: [] } };

  test("a device says of them what its randomizer makes of its answers, and nothing else", async () => {
    const draws = new Draws(seededDraw(8));
    const [said, silent, reports] = [new Uint32Array(4), new Uint32Array(4), 4000];
    const { plan, task } = asked({ recipe: RECIPE, asks: LISTED });
    const question = questionOf(plan, task, known);
    const sum = (total: Uint32Array, found: Uint32Array): void => found.forEach((each, value) => (total[value] = (total[value] as number) + each));
    const own = text([{ at: 1, text: "one xylophone" }, { at: 2, text: "two" }]);
    for (let report = 0; report < reports; report++) {
      sum(said, await question.answer(own, new Uint8Array(), draws));
      sum(silent, question.nothing(draws));
    }
    const { lie, q } = randomizerOf("subset-selection", 4, 2);
    const apart = (found: number, own: number): number => {
      const mean = reports * (own * (1 - lie) + (3 - own) * q);
      return Math.abs(found - mean) / Math.sqrt(reports * (own * lie * (1 - lie) + (3 - own) * q * (1 - q)));
    };
    [1, 0, 0, 2].forEach((own, value) => expect(apart(said[value] as number, own), `said ${value}`).toBeLessThan(FAR));
    [0, 0, 0, 3].forEach((own, value) => expect(apart(silent[value] as number, own), `silent ${value}`).toBeLessThan(FAR));
    expect(apart(silent[0] as number, 1)).toBeGreaterThan(FAR);
  });

  test.each([
    ["a prefix twice", { ...PREFIXES.question, prefixes: ["a", "a"] }],
    ["prefixes of several lengths", { ...PREFIXES.question, prefixes: ["a", "ab"] }],
    ["a letter twice", { ...PREFIXES.question, alphabet: "aba" }],
    ["the end as a letter", { ...PREFIXES.question, alphabet: "ab\n" }],
    ["a letter that is not composed", { ...PREFIXES.question, alphabet: "ab\u212b" }],
    ["a word twice", { about: "words", words: ["a", "a"] }],
  ])("a question is refused, whatever was typed: %s", (_, question) => {
    const { plan, task } = asked({ recipe: RECIPE, asks: { ...PREFIXES, question } });
    expect(() => questionOf(plan, task, known)).toThrow(Refused);
  });

  test("more than a device draws is refused, and other known words than the plan's", async () => {
    const many = asked({ recipe: RECIPE, asks: { ...LISTED, reports: { ...LISTED.reports, local_epsilon: 1e-5, contributions: 100_000 }, question: { about: "words", words: Array.from({ length: 2000 }, (_, at) => `w${at}`) } } });
    expect(() => questionOf(many.plan, many.task, known)).toThrow("more than a device draws");
    const { plan, task } = asked({ recipe: RECIPE, asks: LISTED });
    const words = readFileSync(new URL("fixtures/training/vocabulary.json", import.meta.url));
    await questionOf(plan, task, known).check(new Uint8Array(words));
    await expect(questionOf({ ...plan, vocabulary: "11".repeat(32) }, task, known).check(new Uint8Array(words))).rejects.toThrow("other known words");
    await expect(questionOf(plan, task, known).check(new Uint8Array(5))).rejects.toThrow(Refused);
  });
});

describe("histograms that devices randomise", () => {
  const asks = { cells: [4, 9], local_epsilon: 1.5 };

  test("one histogram is answered, drawn without looking at the cells, by subset selection", () => {
    const draws = new Draws(seededDraw(9));
    const [total, reports] = [new Uint32Array(15), 12_000];
    for (let report = 0; report < reports; report++) counted(asks, [3, 0], draws).forEach((each, cell) => (total[cell] = (total[cell] as number) + each));
    const far = (cell: number, probability: number): number => Math.abs((total[cell] as number) - reports * probability) / Math.sqrt(reports * probability * (1 - probability));
    const [small, large] = asks.cells.map((size) => randomizerOf("subset-selection", size, 1.5)) as [ReturnType<typeof randomizerOf>, ReturnType<typeof randomizerOf>];
    expect([far(13, 0.5), far(3, (1 - small.lie) / 2), far(0, small.q / 2), far(4, (1 - large.lie) / 2), far(5, large.q / 2)].every((each) => each < FAR)).toBe(true);
    const wrong = randomizerOf("subset-selection", 9, 2);
    expect(Math.max(far(4, (1 - wrong.lie) / 2), far(5, wrong.q / 2))).toBeGreaterThan(FAR);
  });

  test("a cell that there is not is an error, and never another's", () => {
    expect(() => counted(asks, [4, 0], new Draws(seededDraw(1)))).toThrow(RangeError);
    expect(() => counted(asks, [0], new Draws(seededDraw(1)))).toThrow(RangeError);
  });
});

describe("a task that contradicts its plan is refused before text is read", () => {
  const [histograms, , sums, list, , one] = python.cases as [Case, Case, Case, Case, Case, Case];
  const changed = (each: Case, asks: object, recipe = each.recipe): (() => Question) => {
    const { plan, task } = asked({ recipe, asks: { ...each.asks, ...asks } });
    return () => questionOf(plan, task, known);
  };

  test.each([
    ["other histograms", histograms, { cells: [5, 3, 10, 8] }, undefined],
    ["sums for histograms", histograms, { norms: [1, 1, 1, 1] }, undefined],
    ["an unknown statistic", histograms, {}, (recipe: string) => recipe.replace('"unknown_share"', '"secrets"')],
    ["cuts that fall", histograms, {}, (recipe: string) => recipe.replace("30.0", "3.0")],
    ["a key that this device does not know", histograms, {}, (recipe: string) => recipe.replace("statistic = ", 'weight = 3\nstatistic = ')],
    ["another norm", sums, { norms: [9.5, 1000] }, undefined],
    ["histograms for sums", sums, { norms: null }, undefined],
    ["an unknown sum", sums, {}, (recipe: string) => recipe.replace("word_pairs", "word_triples")],
    ["more models than its plan", one, { parameters: [1182, 1182] }, undefined],
    ["another network", one, {}, (recipe: string) => recipe.replace("units = 16", "units = 17")],
    ["a model of another size", one, { parameters: [1181] }, undefined],
  ] as const)("%s", (_, each, asks, change) => {
    const recipe = change === undefined ? each.recipe : change(each.recipe);
    if (change !== undefined) expect(recipe).not.toBe(each.recipe);
    expect(changed(each, asks, recipe)).toThrow(Refused);
  });

  test("a list of cells that is another than its plan's", async () => {
    const content = new Uint8Array(Buffer.from(list.content, "base64"));
    const question = changed(list, {})();
    await question.check(content);
    content[content.length - 2] = (content[content.length - 2] as number) ^ 1;
    await expect(question.check(content)).rejects.toThrow("another than its plan's");
  });

  test("a model with a number that is none, and the end of one", async () => {
    const content = new Uint8Array(Buffer.from(one.content, "base64"));
    const question = changed(one, {})();
    await expect(question.check(content.slice(0, -4))).rejects.toThrow(Refused);
    new DataView(content.buffer).setFloat32(content.length - 4, NaN, true);
    await expect(question.check(content)).rejects.toThrow("a number that is none");
  });

  test("judging models where training may read all text; and a kind that this device does not do", () => {
    const { plan, task } = asked(one);
    expect(() => questionOf(plan, task, { ...known, split: null })).toThrow("keep some for that (split in the policy)");
    expect(() => questionOf(plan, task, { ...known, network: null })).toThrow(Refused);
    expect(changed(one, { kind: "personalize", policies: null })).toThrow("no tasks to personalize");
  });
});

test("whatever is kept, a report is as long, and what nobody can say anything of is no report", async () => {
  for (const each of python.cases) {
    const { plan, task } = asked(each);
    const content = new Uint8Array(Buffer.from(each.content, "base64"));
    const silent = await answered({ plan, task, content, known, own: null });
    expect(silent.length).toBe(each.words.length);
    const none = await answered({ plan, task, content, known, own: text([]) });
    expect(none.length).toBe(each.words.length);
    if (task.asks.kind === "evaluate") expect(none).toEqual(silent);
  }
});
