/**
 * A turn of a device: it checks in, and takes part in a round where plan, policy, record and clock allow it.
 *
 * A generator without network or timers: it yields what it asks for and is sent what came of it. So a page, a program
 * and a test drive the same turn. The order is that of docs/protocol.md: text is read only after the participation is
 * durable, and what is requested follows from the task and the record of participations alone.
 */

import { asked, file, problemOf, refuseStatus, request, Unanswered, type Request, type Steps } from "./asks.ts";
import { anotherKey, planOf } from "./belief.ts";
import { ended, type Device, type Turn } from "./device.ts";
import { checkIn, readAnswer, readTask, type Assignment, type Plan, type RoundTask } from "./documents.ts";
import { withToken } from "./enrolment.ts";
import { Malformed, Refused } from "./errors.ts";
import { refuseCost, refusePlan, refuseTask } from "./policy.ts";
import { costOf, refuseMatrix } from "./price.ts";
import type { KnownOperator } from "./record.ts";
import { reportBody, reportBytes, type Prepared, type Said } from "./report.ts";
import { sent, type Body } from "./sending.ts";
import { doubtful, participationOf, priceOf, refuseEarly, type Asked } from "./separation.ts";
import { isSigned } from "./signing.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const LONGEST_AWAY = 3 * 24 * 3600; // that a server can send a device away for
const PREPARE_SECONDS = 600;
const SHARE_OF_ROUND = 1 / 4; // of what is left of it, before which a report leaves
const SHARE_OF_WAIT = 4 / 5; // of the time until it leaves, that reading text may take

/** The operator may have changed its key: the device gives its place back before it asks. */
class AnotherKey extends Refused {}

/** One turn. Throws: CannotWork where the record cannot be kept. */
export async function* turn(device: Device): Steps<Turn> {
  const operator = device.record.operator(device.operatorKey);
  if (device.record.paused()) return ended("not eligible", "the device is paused.");
  if (operator.disowned !== null) return ended("refused", operator.disowned);
  const because = await device.eligible();
  if (because !== null) return ended("not eligible", because);
  try {
    const answer = yield* checkedIn(device, operator);
    if ("what" in answer) return answer;
    return yield* atWork(device, operator, answer);
  } catch (thrown) {
    if (thrown instanceof Unanswered || thrown instanceof Malformed) return ended("unanswered", thrown.message);
    if (thrown instanceof Refused) return ended("refused", thrown.message);
    throw thrown;
  }
}

async function* checkedIn(device: Device, operator: KnownOperator): Steps<Assignment | Turn> {
  const versions = Object.fromEntries(
    device.handlers.filter((each) => device.policy.kinds.includes(each.kind)).map((each) => [each.kind, each.version]),
  );
  const says = (token: string | null): Request =>
    request("POST", "/v1/check-in", { json: checkIn(device.population, versions, token) });
  let answer = yield* asked(says(null));
  if (answer.status === 401 && problemOf(answer).startsWith("tacit:token:")) {
    const shown = yield* withToken(device, operator);
    if (typeof shown !== "string") return shown;
    answer = yield* asked(says(shown));
  }
  refuseStatus(answer, 200);
  const read = readAnswer(answer.body);
  if (read.answer === "assignment") return read;
  const after = Math.min(read.after_s, LONGEST_AWAY);
  const before = Math.max(after, Math.min(read.before_s, LONGEST_AWAY));
  return ended("idle", "there is nothing to do.", { after, before });
}

/** From a task to a receipt; a place that is not used is given back. */
async function* atWork(device: Device, operator: KnownOperator, assignment: Assignment): Steps<Turn> {
  try {
    const body = yield* decided(device, operator, assignment);
    return yield* sent(device, operator, assignment, body);
  } catch (thrown) {
    if (!(thrown instanceof Refused || thrown instanceof Malformed || thrown instanceof Unanswered)) throw thrown;
    yield request("DELETE", `/v1/reports/${assignment.assignment}`, { secret: assignment.secret });
    if (thrown instanceof AnotherKey) yield* anotherKey(device.record, operator); // which throws what is to be said
    const why =
      thrown instanceof Malformed ? `what the operator signed cannot be followed: ${thrown.message}` : thrown.message;
    return ended(thrown instanceof Unanswered ? "unanswered" : "refused", why);
  }
}

/** Everything up to a report. Whatever is refused is refused here, before text is read. */
async function* decided(device: Device, operator: KnownOperator, { assignment, signed_task }: Assignment): Steps<Body> {
  const { policy, record } = device;
  if (!(await isSigned("task", signed_task.document, signed_task.signature, operator.key))) {
    throw new AnotherKey("the task is signed by another key than the pinned one.");
  }
  const task = readTask(signed_task.document);
  const plan = yield* planOf(record, operator, task);
  refuseStrangers(device, plan, task);
  refusePlan(plan, policy);
  const handler = device.handlers.find((each) => each.kind === plan.kind);
  if (handler === undefined || !policy.kinds.includes(plan.kind))
    throw new Refused(`this device does no tasks to ${plan.kind}.`);
  const length = handler.length(plan, task);
  const sealed = yield* sealedRound(device, plan, task);
  refuseTask(task, sealed?.bytes ?? reportBytes(length), device.clock(), policy);
  const asks: Asked = { operator, digest: task.plan, plan, task, series: sealed?.series ?? null };
  refuseEarly(record, asks, policy, device.clock());
  refuseMatrix(plan);
  const matrix = plan.privacy.kind === "training" ? plan.privacy.matrix : null;
  const cost = costOf(plan, matrix === null ? null : yield* file(matrix));
  refuseCost(cost, policy);
  const doubt = doubtful(record, asks, cost, device.clock());
  if (doubt !== null) {
    await record.takePart(doubt);
    throw new Refused(
      "this device lost its record, and may have taken part in this round: it waits, and counts its cost.",
    );
  }
  priceOf(record, asks, cost, policy, device.clock());
  const content = yield* file(task.content);
  const left = task.deadline - device.clock();
  const preparing = Math.min(SHARE_OF_WAIT * SHARE_OF_ROUND * left, PREPARE_SECONDS);
  const prepared = yield* worked(preparing, () => handler.prepare(plan, task, content));

  const now = device.clock();
  refuseTask(task, 0, now, policy); // fetching took its time
  refuseEarly(record, asks, policy, now);
  const participation = participationOf(asks, priceOf(record, asks, cost, policy, now), now);
  await record.takePart(participation);
  // From here on nothing is refused: text decides what the report says, and nothing else.
  const least = policy.send_after_s === 0 ? 0 : Math.max(policy.send_after_s, prepared.seconds);
  const wait = Math.min(least, SHARE_OF_ROUND * (task.deadline - now));
  const reading = SHARE_OF_WAIT * (least === 0 ? SHARE_OF_ROUND * (task.deadline - now) : wait);
  // By the steady clock: whoever sets the other while text is read would see when reading ended.
  const leaves = device.steady() + wait;
  const { said, why } = yield* read(prepared, reading, length);
  const early = leaves - device.steady();
  if (early > 0) yield { kind: "pause", from: early, to: early };
  // Sealing takes as long for every report, so its time is added to one at which every text was read.
  const bytes =
    sealed === null
      ? reportBody(said, assignment)
      : await sealed.seal(said.values instanceof Uint32Array ? said.values : new Uint32Array());
  return { bytes, task, participation, why, aggregation: plan.aggregation.kind };
}

async function* sealedRound(device: Device, plan: Plan, task: RoundTask) {
  if (plan.aggregation.kind !== "sealed") {
    if (task.sealed !== null) throw new Refused("the task seals reports, and its plan does not.");
    return null;
  }
  const { sealing } = device;
  if (task.sealed === null) throw new Refused("the task does not seal reports, and its plan does.");
  if (sealing === null) throw new Refused("this device seals no reports.");
  const { series, bytes } = await sealing.check(plan, task);
  return { series, bytes, seal: (words: Uint32Array): Promise<Bytes> => sealing.seal(plan, task, words) };
}

/** Work before text is read: what goes wrong in it is a refusal. */
async function* worked(seconds: number, run: () => Promise<Prepared>): Steps<Prepared> {
  const came = yield { kind: "work", seconds, run };
  if (came.kind === "done") return came.value as Prepared;
  throw new Refused(came.kind === "failed" ? came.why : "the task could not be prepared.");
}

/** What the text says, or nothing where that goes wrong. */
async function* read(
  prepared: Prepared,
  seconds: number,
  length: number,
): Steps<{ readonly said: Said; readonly why: string | null }> {
  const came = yield { kind: "work", seconds, run: () => prepared.fromText() };
  const said = came.kind === "done" ? (came.value as Said) : null;
  if (said?.values.length === length) return { said, why: null };
  return {
    said: await prepared.nothing(),
    why: came.kind === "failed" ? came.why : "what came of the text is no report.",
  };
}

function refuseStrangers(device: Device, plan: Plan, task: RoundTask): void {
  const wrong =
    (task.run !== plan.run && "the task is of another run than its plan") ||
    (task.asks.kind !== plan.kind && "the task is of another kind than its plan") ||
    (plan.population !== device.population && `the plan is for the population '${plan.population}'`) ||
    (plan.vocabulary !== device.vocabulary && "the plan is about other words than this device knows") ||
    (task.round >= plan.privacy.rounds &&
      `the plan has ${plan.privacy.rounds} rounds, and the task is of round ${task.round}`) ||
    (plan.attestation.server !== "none" &&
      `this device cannot check the server's attestation '${plan.attestation.server}'`) ||
    (plan.attestation.devices !== "none" && `this device cannot show the attestation '${plan.attestation.devices}'`) ||
    ((task.asks.kind === "train"
      ? (task.asks.encoded === null) !== (plan.aggregation.kind === "plain")
      : plan.aggregation.kind === "encoded") &&
      "the task sums reports in another way than its plan");
  if (wrong) throw new Refused(`${wrong}.`);
}
