/** What the owner of a device accepts: `policy.toml` (docs/device.md, "The policy"). */

import { parse, type TomlTable } from "smol-toml";

import type { Plan, RoundTask } from "./documents.ts";
import { CannotWork, Refused, saidBy } from "./errors.ts";
import type { Cost } from "./price.ts";
import { readSplit, type Split } from "./split.ts";

/** The keys of policy.toml, under their own names. */
export interface Policy {
  readonly kinds: readonly string[];
  readonly aggregation: readonly string[];
  readonly decryptors: readonly string[];
  readonly corrupt_decryptors: number;
  readonly noise_by_decryptors: boolean;
  readonly honest_decryptors: number;
  readonly largest_zcdp: number;
  readonly largest_epsilon: number;
  readonly largest_delta: number;
  readonly largest_local_epsilon: number;
  readonly budget_zcdp: number;
  readonly budget_zcdp_week: number;
  readonly smallest_noise_multiplier: number;
  readonly largest_clip_norm: number;
  readonly smallest_cohort: number;
  readonly rounds_apart: number;
  readonly hours_apart: number;
  readonly most_attempts: number;
  readonly longest_round_hours: number;
  readonly clock_minutes: number;
  readonly largest_model_mb: number;
  readonly largest_report_mb: number;
  readonly send_after_s: number;
  readonly show_after_s: number;
  readonly largest_memory_mb: number;
  readonly largest_operations: number;
  readonly split: string;
}

/** `[eligibility]`: what the owner asks of the machine, for probes. */
export interface Eligibility {
  readonly charging: boolean;
  readonly least_battery: number;
  readonly unmetered: boolean;
  readonly largest_load: number | null;
}

export const KINDS: readonly string[] = ["train", "discover", "evaluate", "personalize", "count"];
const AGGREGATIONS: readonly string[] = ["plain", "encoded", "sealed"];

export const DEFAULT_POLICY: Policy = {
  kinds: KINDS,
  aggregation: AGGREGATIONS,
  decryptors: [],
  corrupt_decryptors: 1,
  noise_by_decryptors: false,
  honest_decryptors: 1,
  largest_zcdp: 2,
  largest_epsilon: 10,
  largest_delta: 1e-5,
  largest_local_epsilon: 2,
  budget_zcdp: 4,
  budget_zcdp_week: Infinity,
  smallest_noise_multiplier: 0.1,
  largest_clip_norm: 100,
  smallest_cohort: 2,
  rounds_apart: 1,
  hours_apart: 0,
  most_attempts: 5,
  longest_round_hours: 24,
  clock_minutes: 10,
  largest_model_mb: 100,
  largest_report_mb: 100,
  send_after_s: 10,
  show_after_s: 600,
  largest_memory_mb: 1000,
  largest_operations: 2e14,
  split: "",
};

export const DEFAULT_ELIGIBILITY: Eligibility = {
  charging: true,
  least_battery: 50,
  unmetered: true,
  largest_load: null,
};

const CHOICES: Readonly<Record<string, readonly string[]>> = { kinds: KINDS, aggregation: AGGREGATIONS };
const WHOLE: readonly string[] = [
  "corrupt_decryptors",
  "honest_decryptors",
  "smallest_cohort",
  "rounds_apart",
  "most_attempts",
];

/** A policy from the text of policy.toml. Throws: CannotWork, which names the unknown key or the wrong value. */
export function readPolicy(text: string): { readonly policy: Policy; readonly eligibility: Eligibility } {
  let table: TomlTable;
  try {
    table = parse(text);
  } catch (thrown) {
    throw new CannotWork(`policy.toml is no TOML: ${thrown instanceof Error ? thrown.message.split("\n")[0] : thrown}`);
  }
  const { eligibility = {}, ...keys } = table;
  if (typeof eligibility !== "object" || Array.isArray(eligibility) || eligibility instanceof Date) {
    throw new CannotWork("policy.toml: [eligibility] is a section.");
  }
  const defaults = { ...DEFAULT_ELIGIBILITY, largest_load: Infinity };
  const asked = filled(defaults, eligibility, "eligibility.");
  const load = asked.largest_load === Infinity ? null : asked.largest_load;
  const policy = filled(DEFAULT_POLICY, keys, "");
  splitOf(policy);
  return { policy, eligibility: { ...asked, largest_load: load } };
}

/** What the owner keeps of the text to judge models; null: nothing. Throws: CannotWork where it cannot be read. */
export function splitOf({ split }: Policy): Split | null {
  try {
    return split === "" ? null : readSplit(split);
  } catch (thrown) {
    throw new CannotWork(`policy.toml: ${saidBy(thrown)}`);
  }
}

function filled<T extends object>(defaults: T, table: TomlTable, section: string): T {
  const found = { ...defaults } as unknown as Record<string, unknown>;
  for (const [key, value] of Object.entries(table)) {
    if (!Object.hasOwn(defaults, key))
      throw new CannotWork(`policy.toml: the key '${section}${key}' is unknown; leave it out.`);
    refuseValue(section + key, value, found[key]);
    found[key] = value;
  }
  return found as T;
}

function refuseValue(key: string, value: unknown, example: unknown): void {
  const wrong = (what: string): CannotWork => new CannotWork(`policy.toml: ${key} ${what}.`);
  if (Array.isArray(example)) {
    const choices = CHOICES[key];
    if (!Array.isArray(value) || !value.every((each) => typeof each === "string")) throw wrong("is a list of texts");
    const strange = value.find((each) =>
      choices === undefined ? !/^[0-9a-f]{64}$/.test(each) : !choices.includes(each),
    );
    if (strange !== undefined)
      throw wrong(`has '${strange}', which is ${choices ? `not ${choices.join(" or ")}` : "no Ed25519 key"}`);
  } else if (typeof example === "number") {
    if (typeof value !== "number" || Number.isNaN(value) || value < 0)
      throw wrong(`is ${String(value)}; it should be a number from 0 on`);
    if (WHOLE.includes(key) && !Number.isSafeInteger(value)) throw wrong(`is ${value}; it should be a whole number`);
  } else if (typeof value !== typeof example) {
    throw wrong(`should be a ${typeof example}`);
  }
}

/** Refuses a plan that the owner does not accept. Throws: Refused, which names the key of the policy. */
export function refusePlan(plan: Plan, policy: Policy): void {
  const { privacy, aggregation, separation } = plan;
  const refuse = (key: keyof Policy, what: string): never => {
    throw new Refused(`${what}: your policy's ${key} is ${JSON.stringify(policy[key])}.`);
  };
  if (!policy.kinds.includes(plan.kind)) refuse("kinds", `the plan is to ${plan.kind}`);
  if (!policy.aggregation.includes(aggregation.kind))
    refuse("aggregation", `reports of the plan are ${aggregation.kind}`);
  if (Math.min(aggregation.threshold, privacy.report_goal) < policy.smallest_cohort) {
    refuse("smallest_cohort", `a sum of ${Math.min(aggregation.threshold, privacy.report_goal)} reports may be opened`);
  }
  if (separation.rounds === null && !separation.timer_seconds)
    throw new Refused("the plan lets a device come in every round, for which nothing is promised.");
  if (privacy.kind !== "local") {
    if (privacy.noise_multiplier < policy.smallest_noise_multiplier) {
      refuse("smallest_noise_multiplier", `the plan's noise multiplier is ${privacy.noise_multiplier}`);
    }
    if (privacy.delta > policy.largest_delta) refuse("largest_delta", `the plan's delta is ${privacy.delta}`);
    if (privacy.kind === "training") {
      if (privacy.clip_norm > policy.largest_clip_norm)
        refuse("largest_clip_norm", `the plan's clip norm is ${privacy.clip_norm}`);
      if ((privacy.matrix?.bytes ?? 0) > policy.largest_model_mb * 1e6)
        refuse("largest_model_mb", "the plan's matrix is larger");
    }
  }
  if (aggregation.kind === "sealed") refuseDecryptors(plan, policy, refuse);
  refuseNoise(plan, policy, refuse);
}

type Refuse = (key: keyof Policy, what: string) => never;

function refuseDecryptors({ aggregation: { keepers, boxes, corrupt } }: Plan, policy: Policy, refuse: Refuse): void {
  if (keepers.length !== boxes.length || new Set(keepers).size !== keepers.length) {
    throw new Refused("the plan's decryptors are not one identity and one box each.");
  }
  const strange = keepers.find((each) => policy.decryptors.length > 0 && !policy.decryptors.includes(each));
  if (strange !== undefined)
    refuse("decryptors", `the plan's decryptor ${strange.slice(0, 8)}... is not among those that you trust`);
  if (corrupt < policy.corrupt_decryptors)
    refuse("corrupt_decryptors", `${corrupt} decryptors of the plan may learn nothing`);
}

function refuseNoise({ privacy, aggregation }: Plan, policy: Policy, refuse: Refuse): void {
  const { keepers, contributors, corrupt, honest } = aggregation;
  if (contributors.some((each) => !keepers.includes(each)) || new Set(contributors).size !== contributors.length) {
    throw new Refused("the plan has noise from others than its decryptors.");
  }
  if (honest > (contributors.length > 0 ? contributors.length - corrupt : 1)) {
    throw new Refused(
      `the plan relies on ${honest} honest decryptors of ${contributors.length}, of which ${corrupt} may be corrupt.`,
    );
  }
  if (!policy.noise_by_decryptors || privacy.kind === "local") return; // that needs no noise on a sum
  if (contributors.length === 0) refuse("noise_by_decryptors", "the operator adds the plan's noise");
  if (honest > policy.honest_decryptors)
    refuse("honest_decryptors", `${honest} of the plan's decryptors have to be honest`);
}

/** Refuses a plan that costs more than the owner accepts of one plan. Throws: Refused. */
export function refuseCost(cost: Cost, policy: Policy): void {
  if (cost.localEpsilon !== null) {
    if (cost.localEpsilon > policy.largest_local_epsilon) {
      throw new Refused(
        `epsilon of the plan's reports is ${cost.localEpsilon}: above your policy's largest_local_epsilon.`,
      );
    }
    return;
  }
  if (cost.zcdp > policy.largest_zcdp) {
    throw new Refused(`the plan costs ${cost.zcdp} of zCDP: your policy's largest_zcdp is ${policy.largest_zcdp}.`);
  }
  if (cost.epsilon !== null && cost.epsilon > policy.largest_epsilon) {
    const said = `epsilon ${cost.epsilon} at ${cost.delta}`;
    throw new Refused(`the plan costs ${said}: your policy's largest_epsilon is ${policy.largest_epsilon}.`);
  }
}

/** Refuses a task whose times or sizes the owner does not accept. Throws: Refused. `now` in Unix seconds. */
export function refuseTask(task: RoundTask, reportBytes: number, now: number, policy: Policy): void {
  if (task.deadline <= now) throw new Refused("the round is over by this device's clock.");
  if (task.opens > now + 60 * policy.clock_minutes) {
    throw new Refused(
      `the round opens ${Math.round(task.opens - now)} s from now by this device's clock: a clock is wrong.`,
    );
  }
  if (task.deadline < task.opens) throw new Refused("the round ends before it opens.");
  if (task.deadline - task.opens > 3600 * policy.longest_round_hours) {
    throw new Refused(
      `the round takes longer than ${policy.longest_round_hours} hours, your policy's longest_round_hours.`,
    );
  }
  if (task.content.bytes > 1e6 * policy.largest_model_mb) {
    throw new Refused(
      `the round's file has ${task.content.bytes} bytes: your policy's largest_model_mb is ${policy.largest_model_mb}.`,
    );
  }
  if (reportBytes > 1e6 * policy.largest_report_mb) {
    throw new Refused(
      `a report has ${reportBytes} bytes: your policy's largest_report_mb is ${policy.largest_report_mb}.`,
    );
  }
}
