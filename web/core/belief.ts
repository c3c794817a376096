/** Whom a device believes: the operator's signatures, its log, its change of key. */

import { asked, refuseStatus, request, understood, type Steps } from "./asks.ts";
import { readPlan, readShownLog, readSignedKeyRotation, readSignedPlan } from "./documents.ts";
import type { Plan, RoundTask, ShownLog } from "./documents.ts";
import { Refused } from "./errors.ts";
import { handedOver } from "./keyrotation.ts";
import { checkLog, longerOf, planLine, TwoLogs } from "./log.ts";
import type { DeviceRecord, KnownOperator } from "./record.ts";
import { digest, isSigned } from "./signing.ts";

/** The signed plan, then the log, whether or not the device knows them. Throws: Refused, Malformed. */
export async function* planOf(record: DeviceRecord, operator: KnownOperator, task: RoundTask): Steps<Plan> {
  const answer = yield* asked(request("GET", `/v1/plans/${task.plan}`));
  refuseStatus(answer, 200);
  const came = understood(answer, readSignedPlan);
  if ((await digest(came.document)) !== task.plan)
    throw new Refused("the plan that came is not the one that the task names.");
  if (!(await isSigned("plan", came.document, came.signature, operator.key)))
    throw new Refused("the operator did not sign the plan.");
  const log = yield* shownLog();
  await checkLog(log, operator.key);
  if (!log.entries.includes(planLine(task.plan))) {
    throw new Refused("the plan is not in the operator's log: it may have been made for this device alone.");
  }
  await keep(record, operator, log);
  const plan = readPlan(came.document);
  await record.keepPlan(task.plan, came.document);
  return plan;
}

export async function* shownLog(): Steps<ShownLog> {
  const answer = yield* asked(request("GET", "/v1/log"));
  if (answer.status === 404) throw new Refused("the operator shows no log.");
  refuseStatus(answer, 200);
  return understood(answer, readShownLog);
}

/** Keeps the longer list. Throws: TwoLogs, and the operator is believed no more. */
export async function keep(record: DeviceRecord, operator: KnownOperator, log: ShownLog): Promise<void> {
  const kept = record.log(operator);
  try {
    const longer = longerOf(kept, log);
    if (longer !== kept) await record.keepLog(operator, longer);
  } catch (thrown) {
    if (thrown instanceof TwoLogs) await record.keepOperator({ ...operator, disowned: thrown.message, otherLog: log });
    throw thrown;
  }
}

/** A task that the pinned key did not sign: hand-over, log, and the new key is pinned. It always throws Refused. */
export async function* anotherKey(record: DeviceRecord, operator: KnownOperator): Steps<never> {
  const answer = yield* asked(request("GET", "/v1/key/hand-over"));
  if (answer.status === 404)
    throw new Refused("the task is signed by another key than the pinned one, and the operator handed none over.");
  refuseStatus(answer, 200);
  const log = yield* shownLog();
  const key = await handedOver(understood(answer, readSignedKeyRotation), log, operator.key, operator.before);
  await keep(record, operator, log);
  await record.keepOperator({ ...operator, key, before: [...operator.before, operator.key] });
  throw new Refused(
    `the operator changed its key to ${key.slice(0, 8)}..., for everybody to see; this device goes on with it.`,
  );
}
