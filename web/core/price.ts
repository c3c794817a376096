/** What a plan costs a device, computed from the plan's numbers and from nothing that the plan claims. */

import type { LocalPrivacy, MatrixFile, Plan, TrainingPrivacy } from "./documents.ts";
import { epsilonOf } from "./epsilon.ts";
import { Refused } from "./errors.ts";
import { Section } from "./recipe.ts";
import { readTensor } from "./safetensors.ts";
import { participation, refuseManyPatterns, sensitivitySquared, type Participation } from "./sensitivity.ts";
import { binomial, fromBuffers, fromColumn, fromInverse, roundsOf, spentSquared } from "./strategy.ts";
import type { Matrix, Strategy } from "./strategy.ts";

/** The price of a plan: of everything that it releases of a device. */
export interface Cost {
  /** Of the whole run: what the plan claims, which is no less than what follows from its numbers. */
  readonly zcdp: number;
  /** The same as epsilon at `delta`; both null where the device randomises its reports itself. */
  readonly epsilon: number | null;
  readonly delta: number | null;
  /** Of everything that the device sends in the run, at delta 0, where it randomises its reports itself. */
  readonly localEpsilon: number | null;
  /** Of the rounds that the device took part in, in zCDP. One more never costs less. */
  readonly spent: (rounds: readonly number[]) => number;
}

const TOLERANCE = 1e-9; // relative: two programs add the same numbers in another order
const MOST_ROUNDS = 10_000; // that a device reckons with: a second or two
const MOST_NUMBERS = 2 ** 22; // of a matrix
const LARGEST_NUMBER = 1e100; // of a matrix: its squares are finite
const LOCAL_EPSILONS = [1e-6, 30] as const; // below, a report says nothing; beyond, it hides nothing
const RANDOMIZERS: readonly string[] = ["subset-selection", "projective-geometry", "k-ary"];
const KINDS: Readonly<Record<string, readonly string[]>> = {
  train: ["training"],
  discover: ["local"],
  evaluate: ["histograms", "local"],
  personalize: ["histograms", "local"],
  count: ["histograms", "sums", "local"],
};

/**
 * The factor by which an encoding may lengthen an update (arXiv:2102.06387, Proposition 26, with beta = exp(-1/2)).
 *
 * Of `dimension` rounded coordinates, with the clip norm times the scale in whole steps.
 */
export function encodingFactor(dimension: number, clipNorm: number, scale: number): number {
  const length = clipNorm * scale;
  const root = Math.sqrt(dimension);
  const likely = Math.sqrt(length ** 2 + dimension / 4 + length + root / 2);
  return Math.min(likely, length + root) / length;
}

/**
 * What a plan costs. `file` is what its `matrix` names, and null where it names none.
 *
 * Throws: Refused where the cost cannot be computed, contradicts the recipe, or is more than the plan claims.
 */
export function costOf(plan: Plan, file: Uint8Array | null): Cost {
  const { kind, privacy } = plan;
  if (!KINDS[kind]?.includes(privacy.kind))
    throw new Refused(`the plan is to ${kind}, and promises '${privacy.kind}'.`);
  if (privacy.zcdp === null) throw new Refused("the plan promises no privacy.");
  if (privacy.kind === "training") return ofTraining(plan, privacy, privacy.zcdp, file);
  if (privacy.max_participations !== 1 || (plan.separation.rounds ?? 0) < privacy.rounds) {
    throw new Refused("the plan asks a device more than once, and each answer would cost as much again.");
  }
  if (privacy.kind === "local") return ofLocal(plan, privacy);
  if (privacy.kind === "histograms" && privacy.histograms.length !== privacy.rounds) {
    throw new Refused(`the plan has ${privacy.rounds} steps, and says of ${privacy.histograms.length} what is asked.`);
  }
  const once = 1 / (2 * privacy.noise_multiplier ** 2);
  refuseClaims(privacy, once);
  const { zcdp, epsilon, delta } = privacy;
  return { zcdp, epsilon, delta, localEpsilon: null, spent: (rounds) => rounds.length * once };
}

/** Refuses, before anything is fetched, a matrix whose cost would not be computed. Throws: Refused. */
export function refuseMatrix(plan: Plan): void {
  if (plan.privacy.kind !== "training" || plan.privacy.matrix === null) return;
  const { kind, rounds, bands } = plan.privacy.matrix;
  if (rounds * bands > MOST_NUMBERS) throw new Refused(`the plan's matrix has more than ${MOST_NUMBERS} numbers.`);
  if (rounds !== plan.privacy.rounds) throw new Refused("the plan's matrix is not of as many rounds as the plan.");
  if (kind === "dense" ? bands !== rounds : bands > rounds)
    throw new Refused("the plan's matrix has another number of bands.");
  const limits = limitsOf(plan);
  if (limits !== null && bands > 2 * limits.minSeparation) refuseManyPatterns(limits);
}

/** K reports of an epsilon each, or one: it follows from the recipe to discover, else from the plan alone. */
function ofLocal(plan: Plan, privacy: LocalPrivacy): Cost {
  const { epsilon, each } =
    plan.kind === "discover" ? ofReports(Section.of(plan.recipe)) : localOf(privacy.local_epsilon);
  if (!(each >= LOCAL_EPSILONS[0] && each <= LOCAL_EPSILONS[1])) {
    throw new Refused(`a local epsilon of ${each} is not from ${LOCAL_EPSILONS[0]} to ${LOCAL_EPSILONS[1]}.`);
  }
  const zcdp = epsilon ** 2 / 2; // Bun & Steinke 2016 (arXiv:1605.02065), Proposition 1.4
  refuseLess("local epsilon", privacy.local_epsilon, epsilon);
  refuseLess("zCDP", privacy.zcdp, zcdp);
  return { zcdp, epsilon: null, delta: null, localEpsilon: epsilon, spent: (rounds) => rounds.length * zcdp };
}

function localOf(epsilon: number): { readonly epsilon: number; readonly each: number } {
  return { epsilon, each: epsilon };
}

function ofReports(recipe: Section): { readonly epsilon: number; readonly each: number } {
  const reports = recipe.required("reports");
  const each = reports.number("local_epsilon");
  const randomizer = reports.text("randomizer") ?? "subset-selection";
  if (each === null) throw new Refused("the plan's recipe does not say reports.local_epsilon.");
  if (!RANDOMIZERS.includes(randomizer)) throw new Refused(`the plan's randomizer '${randomizer}' is unknown.`);
  return { epsilon: (reports.whole("contributions") ?? 1) * each, each };
}

function limitsOf(plan: Plan): Participation | null {
  const { rounds, max_participations } = plan.privacy;
  if (plan.separation.rounds === null) return null;
  return participation(rounds, plan.separation.rounds, max_participations);
}

function ofTraining(plan: Plan, privacy: TrainingPrivacy, zcdp: number, file: Uint8Array | null): Cost {
  if (privacy.rounds > MOST_ROUNDS) {
    throw new Refused(`the plan has ${privacy.rounds} rounds, and a device reckons with ${MOST_ROUNDS}.`);
  }
  const recipe = Section.of(plan.recipe);
  refuseContradictions(plan, privacy, recipe);
  if (privacy.mechanism === "none" || privacy.noise_multiplier === 0 || privacy.epsilon === null) {
    throw new Refused("the plan promises no privacy.");
  }
  const strategy = strategyOf(plan, privacy, recipe, file);
  // Where counts of short updates or losses are released, too, this multiplier is that of everything together.
  const rate = inflationOf(plan) ** 2 / (2 * privacy.noise_multiplier ** 2);
  const limits = limitsOf(plan);
  refuseClaims(privacy, limits === null ? 0 : sensitivitySquared(strategy, limits).squared * rate);
  const { epsilon, delta } = privacy;
  return { zcdp, epsilon, delta, localEpsilon: null, spent: (rounds) => spentOf(strategy, rounds) * rate };
}

/**
 * What rounds cost a device, times 2 z^2: of a matrix in numbers just these columns; of another strategy the worst of
 * all rounds that are as many and as near as they.
 */
function spentOf(strategy: Strategy, rounds: readonly number[]): number {
  const came = [...new Set(rounds)].toSorted((a, b) => a - b);
  if (came.length === 0) return 0;
  if (strategy.kind === "matrix") return spentSquared(strategy, came);
  const all = roundsOf(strategy);
  const apart = came.slice(1).reduce((least, each, at) => Math.min(least, each - (came[at] as number)), all);
  return sensitivitySquared(strategy, { rounds: all, minSeparation: apart, maxParticipations: came.length }).squared;
}

function refuseContradictions(plan: Plan, privacy: TrainingPrivacy, recipe: Section): void {
  const rounds = recipe.required("rounds");
  const contradiction =
    (rounds.whole("rounds") !== privacy.rounds && "rounds.rounds") ||
    (rounds.whole("report_goal") !== privacy.report_goal && "rounds.report_goal") ||
    (mechanismName(recipe) !== privacy.mechanism && "privacy.mechanism.name") ||
    (recipe.has("aggregation") !== (plan.aggregation.kind !== "plain") && "[aggregation]");
  if (contradiction) throw new Refused(`the plan contradicts its recipe: ${contradiction}.`);
  if (recipe.section("run")?.has("seed")) {
    throw new Refused("the plan's recipe has run.seed: everybody could draw its noise again.");
  }
}

function mechanismName(recipe: Section): string | null {
  return recipe.required("privacy").required("mechanism").text("name");
}

/** By how much encoding may lengthen an update, as the plan accounts for it. Throws: Refused for no such recipe. */
export function inflationOf(plan: Plan): number {
  if (plan.aggregation.kind === "plain") return 1;
  const inflation = Section.of(plan.recipe).section("aggregation")?.number("inflation") ?? 1.01;
  if (!(inflation >= 1))
    throw new Refused(`the plan's recipe has aggregation.inflation ${inflation}: no encoding shortens.`);
  return inflation;
}

/** Keys of a mechanism in a recipe, besides its name. */
const MECHANISMS: Readonly<Record<string, readonly string[]>> = {
  independent: [],
  tree: ["restarts"],
  "tree-variance-reduced": ["restarts"],
  blt: ["theta", "omega", "buffers"],
  "blt-b400": [],
  "blt-b100": [],
  "blt-b1000": [],
  "banded-toeplitz": ["coefficients", "bands"],
  "square-root": ["bands"],
  "inverse-square-root": ["bands"],
  "banded-inverse": ["coefficients", "bands", "falling"],
  "lambda-cgd": ["coefficients"],
};

/** The published BLTs, theta and omega, by the separation they were designed for (arXiv:2408.08868; tacit's digits). */
const PUBLISHED: Readonly<Record<string, readonly [readonly number[], readonly number[]]>> = {
  "blt-b100": [
    [0.989739971007307, 0.7352001759538236, 0.16776199983448145, 0.1677619998016191],
    [0.20502892852480875, 0.23357939425278557, 0.03479503245420878, 0.03479509876050538],
  ],
  "blt-b400": [
    [0.9999999999921251, 0.9944453083640997, 0.8985923474607591, 0.4912001418098778],
    [0.0070314825502323835, 0.10613806907600574, 0.1898159060327625, 0.1966594748073734],
  ],
  "blt-b1000": [
    [0.9999999999983397, 0.9973412136664378, 0.9584629472313878, 0.6581796870749317],
    [0.008657392263671862, 0.05890891298180951, 0.14548176930698697, 0.2770117005326523],
  ],
};

function strategyOf(plan: Plan, privacy: TrainingPrivacy, recipe: Section, file: Uint8Array | null): Strategy {
  const { rounds, mechanism: name } = privacy;
  if (privacy.matrix !== null) {
    if (file === null) throw new Refused("the plan names a matrix, and it was not fetched.");
    return readMatrix(file, privacy.matrix);
  }
  const mechanism = recipe.required("privacy").required("mechanism");
  const keys = MECHANISMS[name];
  if (keys === undefined)
    throw new Refused(`this device does not know the plan's mechanism '${name}', or not its numbers.`);
  const strange = mechanism.keys().find((key) => key !== "name" && !keys.includes(key));
  if (strange !== undefined) throw new Refused(`the plan's mechanism '${name}' has no key '${strange}'.`);
  const given = (key: string): readonly number[] => {
    const found = mechanism.numbers(key);
    if (found === null) throw new Refused(`the plan's mechanism '${name}' is not given in numbers.`);
    return found;
  };
  const bands = (): number => {
    const found = mechanism.whole("bands") ?? plan.separation.rounds;
    if (found === null || found < 1) throw new Refused(`the plan's mechanism '${name}' says no number of bands.`);
    return Math.min(found, rounds);
  };
  const published = PUBLISHED[name];
  if (published !== undefined) return fromBuffers(published[0], published[1], rounds);
  if (name === "independent") return fromColumn([1], rounds);
  if (name === "blt") return fromBuffers(given("theta"), given("omega"), rounds);
  if (name === "banded-toeplitz") return fromColumn(given("coefficients"), rounds);
  if (name === "square-root") return fromColumn(binomial(-0.5, bands()), rounds);
  if (name === "inverse-square-root") return fromInverse(binomial(0.5, bands()), rounds);
  if (name === "banded-inverse") return fromInverse(given("coefficients"), rounds);
  if (name === "lambda-cgd") {
    if (given("coefficients").length !== 2)
      throw new Refused("lambda-cgd takes back a share of one seed: two coefficients.");
    return fromInverse(given("coefficients"), rounds);
  }
  return { kind: "trees", rounds, starts: startsOf(mechanism.numbers("restarts") ?? [], rounds) };
}

function startsOf(restarts: readonly number[], rounds: number): readonly number[] {
  const starts = [0, ...restarts];
  const rise = starts.every((each, at) => Number.isInteger(each) && (at === 0 || each > (starts[at - 1] as number)));
  if (!rise) throw new Refused("the restarts of the plan's tree are not whole numbers that rise from 1.");
  return starts.filter((each) => each < rounds);
}

/** The matrix of a file, by columns. Throws: Refused where it is not the strategy matrix that the plan names. */
export function readMatrix(file: Uint8Array, said: MatrixFile): Matrix {
  const { rounds, bands } = said;
  const found = readTensor(file, "matrix", "F64", rounds * bands);
  if (!found.every((number) => Math.abs(number) <= LARGEST_NUMBER)) {
    throw new Refused("the plan's matrix has a number that is none, or beyond 1e100.");
  }
  const numbers = said.kind === "dense" ? byColumns(found, rounds) : found;
  for (let column = 0; column < rounds; column++) {
    if (numbers[column * bands] === 0)
      throw new Refused(`the plan's matrix has a zero on its diagonal, in round ${column}.`);
    for (let at = rounds - column; at < bands; at++) {
      if (numbers[column * bands + at] !== 0) throw new Refused("the plan's matrix goes on behind the last round.");
    }
  }
  return { kind: "matrix", rounds, bands, numbers };
}

function byColumns(rows: Float64Array, rounds: number): Float64Array {
  const numbers = new Float64Array(rounds * rounds);
  for (let i = 0; i < rounds; i++) {
    for (let j = 0; j < rounds; j++) {
      const value = rows[i * rounds + j] as number;
      if (j <= i) numbers[j * rounds + i - j] = value;
      else if (value !== 0) throw new Refused("the plan's matrix is not lower triangular.");
    }
  }
  return numbers;
}

/** Refuses a plan that claims less than what follows from its numbers. */
function refuseClaims(privacy: Exclude<Plan["privacy"], LocalPrivacy>, zcdp: number): void {
  refuseLess("zCDP", privacy.zcdp, zcdp);
  refuseLess(`epsilon at delta ${privacy.delta}`, privacy.epsilon, epsilonOf(zcdp, privacy.delta));
}

function refuseLess(what: string, claimed: number | null, found: number): void {
  if (claimed !== null && claimed < found * (1 - TOLERANCE)) {
    throw new Refused(`the plan claims a ${what} of ${claimed}, and its numbers give ${found}.`);
  }
}
