/** When a device takes part again: by rounds, by timers of both clocks, by its budgets (docs/device.md). */

import type { Plan, RoundTask } from "./documents.ts";
import { Refused } from "./errors.ts";
import type { Policy } from "./policy.ts";
import type { Cost } from "./price.ts";
import type { DeviceRecord, KnownOperator, Participation } from "./record.ts";

const ANSWERED_ONCE: readonly string[] = ["discover", "evaluate", "personalize", "count"];
const TOLERANCE = 1e-9; // relative: sums in another order

/** What a device is asked to take part in. */
export interface Asked {
  readonly operator: KnownOperator;
  readonly digest: string; // of the plan
  readonly plan: Plan;
  readonly task: RoundTask;
  /** Of a sealed round: the name of its series. null: another attempt costs again, and is refused. */
  readonly series: string | null;
}

/**
 * Refuses what comes too soon, by the record and the clock alone: before a matrix is fetched.
 *
 * `now` in Unix seconds. Throws: Refused.
 */
export function refuseEarly(record: DeviceRecord, asked: Asked, policy: Policy, now: number): void {
  const { plan, task } = asked;
  const all = record.participations();
  const last = all.reduce((latest, each) => Math.max(latest, each.at), -Infinity);
  if (now < last) throw new Refused("this device's clock is before its last participation: it was set back.");
  const other = all.find(
    (each) => each.operator === asked.operator.first && each.run === plan.run && each.plan !== asked.digest,
  );
  if (other !== undefined)
    throw new Refused(`the run '${plan.run}' has another plan than the one by which this device took part in it.`);
  const ours = all.filter((each) => each.plan === asked.digest);
  if (record.losses().length > 0 && ours.length === 0 && task.round > 0) {
    throw new Refused("this device lost its record, and may have taken part in this run: it joins new runs only.");
  }
  const again = ours.filter((each) => each.round === task.round);
  if (again.length > 0) {
    refuseAttempt(again, asked, policy);
    return; // the same participation, of which one sum at most is opened
  }
  if (now < last + 3600 * policy.hours_apart)
    throw new Refused(`your policy's hours_apart, ${policy.hours_apart}, are not over.`);
  for (const each of ours) refuseNear(each, asked, policy, now);
  const rounds = new Set(ours.map((each) => each.round)).size;
  const most = ANSWERED_ONCE.includes(plan.kind) ? 1 : (plan.privacy.max_participations ?? Infinity);
  if (rounds + 1 > most)
    throw new Refused(`this device took part in this run ${rounds} times, as often as its plan allows.`);
}

function refuseAttempt(again: readonly Participation[], { task, series }: Asked, policy: Policy): void {
  if (series === null || !again.every((each) => each.series === series)) {
    throw new Refused("this device took part in another attempt at this round.");
  }
  if (again.some((each) => each.task === task.task)) throw new Refused("this device reported in this attempt.");
  if (again.length >= policy.most_attempts) {
    throw new Refused(`this device took part in ${again.length} attempts at this round, your policy's most_attempts.`);
  }
}

function refuseNear(before: Participation, { plan, task }: Asked, policy: Policy, now: number): void {
  const { rounds, timer_seconds, clock } = plan.separation;
  const apart = Math.max(rounds ?? 1, policy.rounds_apart);
  if (Math.abs(task.round - before.round) < apart) {
    throw new Refused(
      `round ${task.round} is less than ${apart} rounds from round ${before.round}, in which this device took part.`,
    );
  }
  if (timer_seconds === null) return;
  const ours = clock === "start" ? before.at : before.deadline;
  const theirs = clock === "start" ? before.opens : before.deadline;
  if (now < ours + timer_seconds || task.opens < theirs + timer_seconds) {
    throw new Refused(`the timer of ${timer_seconds} s since this device's last round is not over by both clocks.`);
  }
}

/**
 * What the run would have cost with this round, in zCDP. It is written before text is read.
 *
 * Throws: Refused where the run would cost more than its plan promised, or the owner's budgets do not allow it.
 */
export function priceOf(record: DeviceRecord, asked: Asked, cost: Cost, policy: Policy, now: number): number {
  const ours = record.participations().filter((each) => each.plan === asked.digest);
  const price = cost.spent([...new Set([...ours.map((each) => each.round), asked.task.round])]);
  const promised = cost.zcdp;
  if (!Number.isFinite(price)) throw new Refused("the plan promises no privacy.");
  if (price > promised * (1 + TOLERANCE)) {
    throw new Refused(
      `with this round the run would have cost this device ${price} of zCDP, and its plan promised ${promised}.`,
    );
  }
  const spent = record.spent(now);
  const before = spent.runs.get(asked.digest) ?? 0;
  const more = Math.max(0, price - before);
  if (spent.zcdp + more > policy.budget_zcdp) {
    throw new Refused(
      `with this round ${spent.zcdp + more} of zCDP are spent: your policy's budget_zcdp is ${policy.budget_zcdp}.`,
    );
  }
  const counted = ours.some((each) => each.at > now - 7 * 24 * 3600);
  const week = spent.week + (counted ? more : Math.max(before, price));
  if (week > policy.budget_zcdp_week) {
    throw new Refused(
      `these seven days would have cost ${week} of zCDP: your policy's budget_zcdp_week is ${policy.budget_zcdp_week}.`,
    );
  }
  return price;
}

/**
 * After a loss: the first round of a run in which the device may have been already. It waits, and counts the cost.
 *
 * null where there is no such doubt.
 */
export function doubtful(record: DeviceRecord, asked: Asked, cost: Cost, now: number): Participation | null {
  const ours = record.participations().some((each) => each.plan === asked.digest);
  if (record.losses().length === 0 || ours) return null;
  return { ...participationOf(asked, cost.spent([asked.task.round]), now), task: "", attempt: 0, series: null };
}

export function participationOf(
  { operator, digest, plan, task, series }: Asked,
  spent: number,
  now: number,
): Participation {
  return {
    operator: operator.first,
    plan: digest,
    run: plan.run,
    population: plan.population,
    kind: plan.kind,
    round: task.round,
    attempt: task.attempt,
    task: task.task,
    series,
    opens: task.opens,
    deadline: task.deadline,
    at: now,
    spent,
  };
}
