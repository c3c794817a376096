import { expect, test } from "vitest";

import { readPlan, readTask } from "../core/documents.ts";
import { CannotWork, Refused } from "../core/errors.ts";
import { DEFAULT_ELIGIBILITY, DEFAULT_POLICY, readPolicy, refusePlan, refuseTask } from "../core/policy.ts";
import { costOf } from "../core/price.ts";
import { countHandler, plainNothing, refuseCounting, type Counting } from "../core/report.ts";
import { PLAIN, planSaid, taskSaid } from "./plans.ts";

test("the page's example, and the defaults of the rest", () => {
  const { policy, eligibility } = readPolicy('aggregation = ["sealed"]\nsmallest_cohort = 500\nhours_apart = 20\n');
  expect(policy).toEqual({ ...DEFAULT_POLICY, aggregation: ["sealed"], smallest_cohort: 500, hours_apart: 20 });
  expect(policy.budget_zcdp).toBe(4);
  expect(eligibility).toEqual(DEFAULT_ELIGIBILITY);
  expect(readPolicy("budget_zcdp = inf\n[eligibility]\nlargest_load = 1.0\n")).toMatchObject({
    policy: { budget_zcdp: Infinity },
    eligibility: { largest_load: 1, charging: true },
  });
});

test.each([
  ["an unknown key", "budget = 3", "'budget' is unknown"],
  ["an unknown key of a section", "[eligibility]\nwifi = true", "'eligibility.wifi' is unknown"],
  ["an unknown kind", 'kinds = ["dance"]', "'dance'"],
  ["a number in quotes", 'budget_zcdp = "3"', "budget_zcdp"],
  ["a boolean for a number", "budget_zcdp = true", "budget_zcdp"],
  ["nan", "budget_zcdp = nan", "budget_zcdp"],
  ["less than nothing", "budget_zcdp = -1", "budget_zcdp"],
  ["half a device", "smallest_cohort = 2.5", "smallest_cohort"],
  ["a decryptor that is no key", 'decryptors = ["ours"]', "no Ed25519 key"],
  ["a number for a truth", "noise_by_decryptors = 1", "noise_by_decryptors"],
  ["a split that parts nothing", 'split = "time:1.5"', "write time:0.8"],
  ["no TOML", "=", "no TOML"],
])("refused: %s", (_, text, because) => {
  expect(() => readPolicy(text)).toThrow(CannotWork);
  expect(() => readPolicy(text)).toThrow(because);
});

const [OURS, THEIRS, BOX] = [
  "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29",
  "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c",
  "09".padEnd(64, "0"),
];
const SEALED = { ...PLAIN, kind: "sealed", keepers: [OURS, THEIRS], boxes: [BOX, BOX], corrupt: 1 };

test.each([
  ["strangers", {}, { decryptors: [OURS] }, "decryptors"],
  ["too few that may be corrupt", { corrupt: 0 }, {}, "corrupt_decryptors"],
  ["noise of the operator", {}, { noise_by_decryptors: true }, "noise_by_decryptors"],
  ["noise of others", { keepers: [OURS], boxes: [BOX], contributors: [THEIRS] }, {}, "others than its decryptors"],
  ["more honest than there are", { contributors: [OURS, THEIRS], honest: 2 }, {}, "may be corrupt"],
  ["a box missing", { boxes: [BOX] }, {}, "one box each"],
  ["one decryptor twice", { keepers: [OURS, OURS] }, {}, "one identity"],
])("sealed sums are refused: %s", (_, changed, policy, because) => {
  const plan = readPlan(planSaid({ aggregation: { ...SEALED, ...changed } }));
  refusePlan(readPlan(planSaid({ aggregation: SEALED })), DEFAULT_POLICY);
  expect(() => refusePlan(plan, { ...DEFAULT_POLICY, ...policy })).toThrow(Refused);
  expect(() => refusePlan(plan, { ...DEFAULT_POLICY, ...policy })).toThrow(because);
});

test("a plan that promises nothing is refused", () => {
  const privacy = JSON.parse(planSaid({})).privacy;
  for (const changed of [{ zcdp: null, epsilon: null }, { noise_multiplier: 0 }, { epsilon: null }]) {
    const plan = readPlan(planSaid({ privacy: { ...privacy, ...changed } }));
    expect(() => costOf(plan, null)).toThrow("promises no privacy");
  }
});

test("a report that is too large is refused", () => {
  const task = readTask(taskSaid({}));
  expect(() => refuseTask(task, 101e6, 1_800_000_001, DEFAULT_POLICY)).toThrow("largest_report_mb");
});

const LOCAL = { kind: "local", zcdp: 2, report_goal: 5, rounds: 20, max_participations: 1, local_epsilon: 2 };
const HISTOGRAMS = {
  kind: "histograms",
  zcdp: 0.5,
  report_goal: 3,
  rounds: 1,
  max_participations: 1,
  epsilon: 5,
  delta: 1e-5,
  histograms: [3],
  noise_multiplier: 1,
};
const SUMS = { ...HISTOGRAMS, kind: "sums", clip_norm: 5, histograms: undefined };
const REPORTS = { local_epsilon: 2, contributions: 1, sampler: "random", randomizer: "subset" };
const DISCOVER = { kind: "discover", question: { about: "words", words: ["so"] }, reports: REPORTS };
const COUNT = { kind: "count", cells: [4, 4, 4], local_epsilon: null, norms: null };
const RECIPE = `[reports]\ncontributions = 1\nlocal_epsilon = 2.0\nsampler = "random"\nrandomizer = "subset"\n`;

test.each([
  ["words", LOCAL, DISCOVER, null],
  [
    "more reports than the plan has",
    LOCAL,
    { ...DISCOVER, reports: { ...REPORTS, contributions: 2 } },
    "reports.contributions",
  ],
  [
    "less noise than the plan has",
    LOCAL,
    { ...DISCOVER, reports: { ...REPORTS, local_epsilon: 3 } },
    "reports.local_epsilon",
  ],
  ["a plan that claims less than K times epsilon", { ...LOCAL, local_epsilon: 1 }, DISCOVER, "claims epsilon 1"],
  ["another randomizer", LOCAL, { ...DISCOVER, reports: { ...REPORTS, randomizer: "none" } }, "reports.randomizer"],
  ["another sampler", LOCAL, { ...DISCOVER, reports: { ...REPORTS, sampler: "greedy" } }, "reports.sampler"],
  ["words of a plan with central noise", HISTOGRAMS, DISCOVER, "randomise"],
  ["histograms", HISTOGRAMS, COUNT, null],
  ["more histograms", HISTOGRAMS, { ...COUNT, cells: [4, 4] }, "2 histograms"],
  ["histograms in the clear of a plan of local reports", LOCAL, COUNT, "randomised otherwise"],
  ["randomised ones", LOCAL, { ...COUNT, local_epsilon: 2 }, null],
  ["sums", SUMS, { ...COUNT, cells: [9, 9], norms: [3, 4] }, null],
  ["sums that are longer", SUMS, { ...COUNT, cells: [9, 9], norms: [4, 4] }, "the norm"],
  ["sums without norms", SUMS, COUNT, "norm for each"],
])("a question and its plan: %s", (_, privacy, asks, because) => {
  const kind = (asks as { kind: string }).kind;
  const plan = readPlan(planSaid({ kind, privacy, recipe: RECIPE }));
  const task = readTask(taskSaid({ asks }));
  if (because === null) refuseCounting(plan, task);
  else expect(() => refuseCounting(plan, task)).toThrow(because);
});

test("nothing to say: the last cell of each histogram, zeros for sums", () => {
  const said = (asks: object) => plainNothing(readTask(taskSaid({ asks })));
  expect(said({ ...COUNT, cells: [2, 3] })).toEqual(Uint32Array.of(0, 1, 0, 0, 1));
  expect(said({ ...COUNT, cells: [2, 3], norms: [1, 1] })).toEqual(new Uint32Array(5));
  expect(() => said({ ...COUNT, local_epsilon: 1 })).toThrow(Refused);
});

test("a step has the histograms that its own noise is made for, and not those of another step", () => {
  const plan = readPlan(planSaid({ kind: "count", privacy: { ...HISTOGRAMS, rounds: 2, histograms: [1, 2] } }));
  const step = (round: number, cells: readonly number[]) => readTask(taskSaid({ round, asks: { ...COUNT, cells } }));
  refuseCounting(plan, step(0, [3]));
  refuseCounting(plan, step(1, [3, 3]));
  expect(() => refuseCounting(plan, step(0, [3, 3]))).toThrow(Refused);
  expect(() => refuseCounting(plan, step(1, [3]))).toThrow(Refused);
});

test.each([
  ["more reports", { contributions: 2 }],
  ["another sampler", { sampler: "greedy" }],
  ["another randomizer", { randomizer: "k-ary" }],
  ["another epsilon", { local_epsilon: 0.5 }],
])("what a recipe leaves out is its default, which a task keeps to: %s", (_, changed) => {
  const local = { kind: "local", zcdp: 8, report_goal: 3, rounds: 1, max_participations: 1, local_epsilon: 4 };
  const plan = readPlan(planSaid({ kind: "discover", privacy: local, recipe: "[reports]\nlocal_epsilon = 1.0\n" }));
  const reports = { local_epsilon: 1, contributions: 1, sampler: "random", randomizer: "subset-selection" };
  const question = { about: "prefixes", prefixes: [""], alphabet: "ab", depth: 3, found: [] };
  const task = (asks: object) => readTask(taskSaid({ asks: { kind: "discover", question, reports: { ...reports, ...asks } } }));
  refuseCounting(plan, task({}));
  expect(() => refuseCounting(plan, task(changed))).toThrow(Refused);
});

test("a report that says nothing is made of every task, whatever the text is", async () => {
  const plan = readPlan(planSaid({ kind: "count", privacy: HISTOGRAMS }));
  const made: string[] = [];
  const handler = countHandler("count", {
    seconds: 0,
    check: async () => undefined,
    sizes: () => ({ length: 3, most: 1 }),
    answer: async () => {
      made.push("answer");
      throw new Error("no text");
    },
    nothing: async () => {
      made.push("nothing");
      return Uint32Array.of(0, 0, 1);
    },
  });
  const prepared = await handler.prepare(plan, readTask(taskSaid({ asks: COUNT })), new Uint8Array());
  expect(made).toEqual(["nothing"]);
  await expect(prepared.fromText()).rejects.toThrow("no text");
  expect([...(await prepared.nothing()).values]).toEqual([0, 0, 1]);
  expect(made).toEqual(["nothing", "answer"]);
});

test("counts that are none become nothing", async () => {
  const plan = readPlan(planSaid({ kind: "count", privacy: HISTOGRAMS }));
  const task = readTask(taskSaid({ asks: COUNT }));
  let answer = Uint32Array.of(1, 0, 0);
  const counting: Counting = {
    seconds: 0,
    check: async () => undefined,
    sizes: () => ({ length: 3, most: 1 }),
    answer: async () => answer,
    nothing: async () => new Uint32Array(3),
  };
  const handler = countHandler("count", counting);
  expect(handler.length(plan, task)).toBe(3);
  const prepared = await handler.prepare(plan, task, new Uint8Array());
  expect((await prepared.fromText()).values).toEqual(answer);
  for (const wrong of [Uint32Array.of(2, 0, 0), Uint32Array.of(1)]) {
    answer = wrong;
    await expect(prepared.fromText()).rejects.toThrow(RangeError);
  }
});
