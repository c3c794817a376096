/** What a plan costs a device, computed from the plan's numbers and from nothing that the plan claims. */

import type { MatrixFile, Plan, TrainingPrivacy } from "./documents.ts";
import { epsilonOf } from "./epsilon.ts";
import { Refused } from "./errors.ts";
import { Section } from "./recipe.ts";
import { readTensor } from "./safetensors.ts";
import { participation, refuseManyPatterns, sensitivitySquared, type Participation } from "./sensitivity.ts";
import {
  binomial,
  fromBuffers,
  fromColumn,
  fromInverse,
  spentSquared,
  type Matrix,
  type Strategy,
} from "./strategy.ts";

/** The price of a plan: zCDP is that of everything that it releases of a device. */
export interface Cost {
  /** Of the worst case that the plan allows; null where nobody knows it beforehand (a timer alone). */
  readonly zcdp: number | null;
  /** Whether that is exact, or a proved upper bound. */
  readonly exact: boolean;
  /** The delta of the plan; null where epsilon is that of reports which the device randomises itself. */
  readonly delta: number | null;
  /** Of everything that the device sends in the run, at delta 0, where it randomises its reports itself. */
  readonly localEpsilon: number | null;
  /** Of the rounds that the device took part in, in zCDP. */
  readonly spent: (rounds: readonly number[]) => number;
}

const TOLERANCE = 1e-9; // relative: two programs add the same numbers in another order
const MOST_NUMBERS = 2 ** 22; // of a matrix
const LARGEST_NUMBER = 1e100; // of a matrix: its squares are finite

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
  const cost = computed(plan, file);
  refuseClaims(plan, cost);
  return cost;
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

function computed(plan: Plan, file: Uint8Array | null): Cost {
  const { privacy } = plan;
  if (privacy.kind === "training") return ofTraining(plan, privacy, file);
  if (privacy.kind === "local") {
    const once = privacy.local_epsilon ** 2 / 2; // Bun & Steinke 2016 (arXiv:1605.02065), Proposition 1.4
    return { zcdp: once, exact: true, delta: null, localEpsilon: privacy.local_epsilon, spent: each(once) };
  }
  const once = 1 / (2 * privacy.noise_multiplier ** 2);
  return { zcdp: once, exact: true, delta: privacy.delta, localEpsilon: null, spent: each(once) };
}

/** A device answers such a run once; if it answered more often, each answer would cost the same again. */
function each(once: number): (rounds: readonly number[]) => number {
  return (rounds) => rounds.length * once;
}

function limitsOf(plan: Plan): Participation | null {
  const { rounds, max_participations } = plan.privacy;
  if (plan.separation.rounds === null) return null;
  return participation(rounds, plan.separation.rounds, max_participations);
}

function ofTraining(plan: Plan, privacy: TrainingPrivacy, file: Uint8Array | null): Cost {
  const recipe = Section.of(plan.recipe);
  refuseContradictions(privacy, recipe);
  if (privacy.mechanism === "none" || privacy.noise_multiplier === 0) {
    return { zcdp: Infinity, exact: true, delta: privacy.delta, localEpsilon: null, spent: each(Infinity) };
  }
  const strategy = strategyOf(privacy, recipe, file);
  // Where counts of short updates or losses are released, too, this multiplier is that of everything together.
  const rate = inflationOf(plan) ** 2 / (2 * privacy.noise_multiplier ** 2);
  const limits = limitsOf(plan);
  const worst = limits === null ? null : sensitivitySquared(strategy, limits);
  return {
    zcdp: worst === null ? null : worst.squared * rate,
    exact: worst?.exact ?? false,
    delta: privacy.delta,
    localEpsilon: null,
    spent: (rounds) => spentSquared(strategy, rounds) * rate,
  };
}

function refuseContradictions(privacy: TrainingPrivacy, recipe: Section): void {
  const rounds = recipe.required("rounds");
  const contradiction =
    (rounds.whole("rounds") !== privacy.rounds && "rounds.rounds") ||
    (rounds.whole("report_goal") !== privacy.report_goal && "rounds.report_goal") ||
    (mechanismName(recipe) !== privacy.mechanism && "privacy.mechanism.name");
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

function strategyOf(privacy: TrainingPrivacy, recipe: Section, file: Uint8Array | null): Strategy {
  if (privacy.matrix !== null) {
    if (file === null) throw new Refused("the plan names a matrix, and it was not fetched.");
    return readMatrix(file, privacy.matrix);
  }
  const mechanism = recipe.required("privacy").required("mechanism");
  const { rounds } = privacy;
  const coefficients = (): readonly number[] => {
    const found = mechanism.numbers("coefficients");
    if (found === null) throw new Refused(`the plan's mechanism '${privacy.mechanism}' is not given in numbers.`);
    return found;
  };
  const bands = (): number => {
    const found = mechanism.whole("bands") ?? recipe.required("rounds").whole("min_separation");
    if (found === null || found < 1)
      throw new Refused(`the plan's mechanism '${privacy.mechanism}' says no number of bands.`);
    return Math.min(found, rounds);
  };
  switch (privacy.mechanism) {
    case "independent":
      return fromColumn([1], rounds);
    case "tree":
    case "tree-variance-reduced":
      return { kind: "trees", rounds, starts: startsOf(mechanism.numbers("restarts") ?? [], rounds) };
    case "blt": {
      const [theta, omega] = [mechanism.numbers("theta"), mechanism.numbers("omega")];
      if (theta === null || omega === null) throw new Refused("the plan's mechanism 'blt' is not given in numbers.");
      return fromBuffers(theta, omega, rounds);
    }
    case "banded-toeplitz":
      return fromColumn(coefficients(), rounds);
    case "square-root":
      return fromColumn(binomial(-0.5, bands()), rounds);
    case "inverse-square-root":
      return fromInverse(binomial(0.5, bands()), rounds);
    case "banded-inverse":
    case "lambda-cgd":
      return fromInverse(coefficients(), rounds);
    default:
      throw new Refused(`this device does not know the plan's mechanism '${privacy.mechanism}', or not its numbers.`);
  }
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

/** Refuses a plan that claims less than it costs. */
function refuseClaims(plan: Plan, cost: Cost): void {
  const { privacy } = plan;
  if (cost.zcdp === null || cost.zcdp === Infinity) return;
  if (privacy.zcdp !== null && cost.zcdp > privacy.zcdp * (1 + TOLERANCE)) {
    throw new Refused(`the plan claims ${privacy.zcdp} of zCDP, and costs ${cost.zcdp}.`);
  }
  if (privacy.kind === "local" || privacy.epsilon === null) return;
  const epsilon = epsilonOf(cost.zcdp, privacy.delta);
  if (epsilon > privacy.epsilon * (1 + TOLERANCE)) {
    throw new Refused(`the plan claims epsilon ${privacy.epsilon} at delta ${privacy.delta}, and costs ${epsilon}.`);
  }
}
