/** Plans, costs and times in words. */

import type { Plan } from "../core/documents.ts";

export function number(value: number): string {
  return value === Infinity ? "no limit" : String(Number(value.toPrecision(3)));
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} bytes`;
  return count < 1e6 ? `${(count / 1e3).toFixed(1)} kB` : `${(count / 1e6).toFixed(2)} MB`;
}

export function time(seconds: number): string {
  return new Date(1000 * seconds).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

const WHO_SEES: Readonly<Record<Plan["aggregation"]["kind"], string>> = {
  plain: "The operator sees this device's report as it is.",
  encoded: "The operator sees this device's report, as whole numbers.",
  sealed: "The operator sees the sum of all reports, and none of them.",
};

const ASKS: Readonly<Record<string, string>> = {
  train: "It asks for what your text would change in the shared model.",
  discover: "It asks which words you use that the keyboard does not know.",
  evaluate: "It asks how well models predict your text.",
  personalize: "It asks how well a model of your own would do.",
  count: "It asks for counts of words in your text.",
};

const KINDS_IN_WORDS: Readonly<Record<string, string>> = {
  train: "training the shared model", discover: "finding new words", evaluate: "judging models", personalize: "judging models of one's own", count: "counting words",
};

/** A kind of task. */
export function kindInWords(kind: string): string {
  return KINDS_IN_WORDS[kind] ?? kind;
}

/** Who could read a single report of a plan. */
export function readersOf({ aggregation }: Plan): string {
  if (aggregation.kind !== "sealed") return "the operator";
  const more = aggregation.corrupt + 1;
  return `nobody, unless the operator and ${more} or more decryptors work together`;
}

/** What a plan means for who takes part, in sentences. */
export function planInWords({ kind, privacy, aggregation, separation }: Plan): readonly string[] {
  return [
    ASKS[kind] ?? `It is a task to ${kind}.`,
    WHO_SEES[aggregation.kind],
    ...(aggregation.kind === "sealed" ? [`${aggregation.keepers.length} decryptors open a sum of at least ${aggregation.threshold} reports together.`] : []),
    `A round has at least ${privacy.report_goal} reports, and the run up to ${privacy.rounds} rounds.`,
    privacy.max_participations === null
      ? "It does not say how often you may take part; your device stops where the promise ends."
      : `You take part at most ${privacy.max_participations} ${privacy.max_participations === 1 ? "time" : "times"}.`,
    ...(separation.rounds === null || separation.rounds < 2 ? [] : [`At least ${separation.rounds} rounds lie between two of yours.`]),
    promise(privacy, aggregation.contributors.length > 0 ? "its decryptors add the noise" : "the operator adds the noise"),
  ];
}

function promise(privacy: Plan["privacy"], noise: string): string {
  if (privacy.kind === "local") return `Your device hides each answer by itself: epsilon ${number(privacy.local_epsilon)}. Nobody is trusted for that.`;
  if (privacy.epsilon === null || privacy.zcdp === null) return "It promises no privacy, and your device takes no part.";
  return `The whole run costs you at most epsilon ${number(privacy.epsilon)} at delta ${privacy.delta}, as long as ${noise}.`;
}
