/**
 * A turn of a device: it checks in, and takes part in a round where plan, policy, record and clock allow it.
 *
 * A generator without network or timers: it yields what it asks for and is sent what came of it. So a page, a program
 * and a test drive the same turn. The order is that of docs/protocol.md: text is read only after the participation is
 * durable, and what is requested follows from the task and the record of participations alone.
 */

import { sha256, toHex, utf8 } from "./bytes.ts";
import {
  checkIn, readAnswer, readBlindSignatures, readPlan, readProblem, readReceipt, readShownLog, readSigned, readSignedKeyRotation,
  readSignedPlan, readTask, readTokenKey, tokenRequest, type Assignment, type Plan, type RoundTask, type ShownLog, type TokenKey,
} from "./documents.ts";
import { Malformed, Refused } from "./errors.ts";
import { handedOver } from "./keyrotation.ts";
import { checkLog, longerOf, planLine, TwoLogs } from "./log.ts";
import { refuseCost, refusePlan, refuseTask, type Policy } from "./policy.ts";
import { costOf, refuseMatrix } from "./price.ts";
import type { DeviceRecord, EpochTokens, KnownOperator } from "./record.ts";
import { reportBody, reportBytes, type Handler, type Prepared, type Said, type Sealing } from "./report.ts";
import { doubtful, participationOf, priceOf, refuseEarly, type Asked } from "./separation.ts";
import { digest, isSigned } from "./signing.ts";
import { blinded, checkTokenKey, finalized, tokenMessage } from "./tokens.ts";

type Bytes = Uint8Array<ArrayBuffer>;

export interface Request {
  readonly kind: "request";
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Bytes | null;
  /** No more is read of an answer, and none is waited for longer. */
  readonly mostBytes: number;
  readonly seconds: number;
}

export interface Pause {
  readonly kind: "pause";
  readonly seconds: number;
}

/** Work on models and text, which a driver may do elsewhere; it is ended after so many seconds. */
export interface Work {
  readonly kind: "work";
  readonly seconds: number;
  run(): Promise<unknown>;
}

export type Ask = Request | Pause | Work;

/** An answer of a server. `whole` is false where it was cut off: then `body` is what came of it. */
export interface Answered {
  readonly kind: "answered";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>; // names in small letters
  readonly body: Uint8Array;
  readonly whole: boolean;
}

export interface Failed {
  readonly kind: "failed";
  readonly why: string;
}

export interface Done {
  readonly kind: "done";
  readonly value: unknown;
}

export type Came = Answered | Failed | Done;

/** What became of a turn, for the device's owner, and when the next may be. */
export interface Turn {
  readonly what: "not eligible" | "idle" | "refused" | "unanswered" | "reported" | "lost";
  readonly why: string;
  /** Seconds between which the next turn is drawn; null: the device waits as after no answer. */
  readonly wait: { readonly after: number; readonly before: number } | null;
}

export interface Device {
  /** The operator's key, as it was pinned. */
  readonly operatorKey: string;
  readonly population: string;
  /** The digest of the words that this device knows. */
  readonly vocabulary: string;
  readonly policy: Policy;
  readonly record: DeviceRecord;
  readonly handlers: readonly Handler[];
  readonly sealing: Sealing | null;
  readonly enrolmentCode: string | null;
  /** Unix seconds. */
  clock(): number;
  /** Uniform in [0, 1), of the system's randomness. */
  random(): number;
  /** Why the device may not work now, or null. */
  eligible(): Promise<string | null>;
}

type Steps<T> = AsyncGenerator<Ask, T, Came>;

/** No answer that the protocol allows. */
class Unanswered extends Error {}

const MOST_JSON = 16 * 2 ** 20; // of an answer in JSON: a log of 131,072 entries has 10 MB
const ANSWER_SECONDS = 60;
const TRIES = 4; // of what is asked for after a task was given out
const RANGES = 8; // pieces that a file may come in
const PREPARE_SECONDS = 600;
const SHARE_OF_ROUND = 1 / 4; // of what is left of it, before which a report leaves
const SHARE_OF_WAIT = 4 / 5; // of the time until it leaves, that reading text may take

/** One turn. Throws: CannotWork where the record cannot be kept. */
export async function* turn(device: Device): Steps<Turn> {
  const operator = device.record.operator(device.operatorKey);
  if (device.record.paused()) return ended("not eligible", "the device is paused.");
  if (operator.disowned !== null) return ended("refused", operator.disowned);
  const because = await device.eligible();
  if (because !== null) return ended("not eligible", because);
  try {
    const answer = yield* checkedIn(device, operator);
    if (answer.answer !== "assignment") return answer;
    return yield* atWork(device, operator, answer);
  } catch (thrown) {
    if (thrown instanceof Unanswered || thrown instanceof Malformed) return ended("unanswered", thrown.message);
    if (thrown instanceof Refused) return ended("refused", thrown.message);
    throw thrown;
  }
}

function ended(what: Turn["what"], why: string, wait: Turn["wait"] = null): Turn & { readonly answer?: never } {
  return { what, why, wait };
}

async function* checkedIn(device: Device, operator: KnownOperator): Steps<Assignment | (Turn & { readonly answer?: never })> {
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
  const [after, before] = [Math.min(read.after_s, read.before_s), Math.max(read.after_s, read.before_s)];
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
    const why = thrown instanceof Malformed ? `what the operator signed cannot be followed: ${thrown.message}` : thrown.message;
    return ended(thrown instanceof Unanswered ? "unanswered" : "refused", why);
  }
}

interface Body {
  readonly bytes: Bytes;
  readonly task: RoundTask;
  readonly leaves: number; // Unix seconds
  readonly why: string | null; // it has nothing to say
  readonly aggregation: string;
}

/** Everything up to a report. Whatever is refused is refused here, before text is read. */
async function* decided(device: Device, operator: KnownOperator, { assignment, signed_task }: Assignment): Steps<Body> {
  const { policy, record } = device;
  if (!(await isSigned("task", signed_task.document, signed_task.signature, operator.key))) {
    yield* anotherKey(device, operator);
  }
  const task = readTask(signed_task.document);
  const plan = yield* planOf(device, operator, task);
  refuseStrangers(device, plan, task);
  refusePlan(plan, policy);
  const handler = device.handlers.find((each) => each.kind === plan.kind);
  if (handler === undefined || !policy.kinds.includes(plan.kind)) throw new Refused(`this device does no tasks to ${plan.kind}.`);
  const length = handler.length(plan, task);
  const sealed = yield* sealedRound(device, plan, task);
  refuseTask(task, sealed?.bytes ?? reportBytes(length), device.clock(), policy);
  const asks: Asked = { operator, digest: task.plan, plan, task, series: sealed?.series ?? null };
  refuseEarly(record, asks, policy, device.clock());
  refuseMatrix(plan);
  const matrix = plan.privacy.kind === "training" ? plan.privacy.matrix : null;
  const cost = costOf(plan, matrix === null ? null : yield* file(matrix));
  refuseCost(plan, cost, policy);
  const doubt = doubtful(record, asks, cost, device.clock());
  if (doubt !== null) {
    await record.takePart(doubt);
    throw new Refused("this device lost its record, and may have taken part in this round: it waits, and counts its cost.");
  }
  priceOf(record, asks, cost, policy, device.clock());
  const content = yield* file(task.content);
  const left = task.deadline - device.clock();
  const preparing = Math.min(SHARE_OF_WAIT * SHARE_OF_ROUND * left, PREPARE_SECONDS);
  const prepared = yield* worked(preparing, () => handler.prepare(plan, task, content));

  const now = device.clock();
  refuseTask(task, 0, now, policy); // fetching took its time
  refuseEarly(record, asks, policy, now);
  await record.takePart(participationOf(asks, priceOf(record, asks, cost, policy, now), now));
  // From here on nothing is refused: text decides what the report says, and nothing else.
  const least = policy.send_after_s === 0 ? 0 : Math.max(policy.send_after_s, prepared.seconds);
  const wait = Math.min(least, SHARE_OF_ROUND * (task.deadline - now));
  const reading = SHARE_OF_WAIT * (least === 0 ? SHARE_OF_ROUND * (task.deadline - now) : wait);
  const { said, why } = yield* read(prepared, reading, length);
  const bytes =
    sealed === null ? reportBody(said, assignment) : await sealed.seal(said.values instanceof Uint32Array ? said.values : new Uint32Array());
  return { bytes, task, leaves: now + wait, why, aggregation: plan.aggregation.kind };
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
  prepared: Prepared, seconds: number, length: number,
): Steps<{ readonly said: Said; readonly why: string | null }> {
  const came = yield { kind: "work", seconds, run: () => prepared.fromText() };
  const said = came.kind === "done" ? (came.value as Said) : null;
  if (said?.values.length === length) return { said, why: null };
  return { said: await prepared.nothing(), why: came.kind === "failed" ? came.why : "what came of the text is no report." };
}

/** The signed plan, then the log, whether or not the device knows them. Throws: Refused, Malformed. */
async function* planOf(device: Device, operator: KnownOperator, task: RoundTask): Steps<Plan> {
  const { record } = device;
  const came = readSignedPlan((yield* fetched(request("GET", `/v1/plans/${task.plan}`))).body);
  const log = yield* shownLog();
  if ((await digest(came.document)) !== task.plan) throw new Refused("the plan that came is not the one that the task names.");
  if (!(await isSigned("plan", came.document, came.signature, operator.key))) throw new Refused("the operator did not sign the plan.");
  await believe(record, operator, log);
  if (!log.entries.includes(planLine(task.plan))) {
    throw new Refused("the plan is not in the operator's log: it may have been made for this device alone.");
  }
  const plan = readPlan(came.document);
  await record.keepPlan(task.plan, came.document);
  return plan;
}

async function* shownLog(): Steps<ShownLog> {
  return readShownLog((yield* fetched(request("GET", "/v1/log"))).body);
}

/** Checks a log and keeps the longer one. Throws: Refused; after two logs the operator is believed no more. */
async function believe(record: DeviceRecord, operator: KnownOperator, log: ShownLog): Promise<void> {
  await checkLog(log, operator.key);
  const kept = record.log(operator);
  try {
    const longer = longerOf(kept, log);
    if (longer !== kept) await record.keepLog(operator, longer);
  } catch (thrown) {
    if (thrown instanceof TwoLogs) await record.keepOperator({ ...operator, disowned: thrown.message, otherLog: log });
    throw thrown;
  }
}

/** A task that the pinned key did not sign: the hand-over, the log, and the new key is pinned. It always throws Refused. */
async function* anotherKey(device: Device, operator: KnownOperator): Steps<never> {
  const answer = yield* fetched(request("GET", "/v1/key/hand-over"), 404);
  const log = yield* shownLog();
  if (answer.status === 404) throw new Refused("the task is signed by another key than the pinned one, and the operator handed none over.");
  const key = await handedOver(readSignedKeyRotation(answer.body), log, operator.key);
  await believe(device.record, { ...operator, key }, log);
  await device.record.keepOperator({ ...operator, key });
  throw new Refused(`the operator changed its key to ${key.slice(0, 8)}..., for everybody to see; this device goes on with it.`);
}

function refuseStrangers(device: Device, plan: Plan, task: RoundTask): void {
  const wrong =
    (task.run !== plan.run && "the task is of another run than its plan") ||
    (task.asks.kind !== plan.kind && "the task is of another kind than its plan") ||
    (plan.population !== device.population && `the plan is for the population '${plan.population}'`) ||
    (plan.vocabulary !== device.vocabulary && "the plan is about other words than this device knows") ||
    (task.round >= plan.privacy.rounds && `the plan has ${plan.privacy.rounds} rounds, and the task is of round ${task.round}`) ||
    (plan.attestation.server !== "none" && `this device cannot check the server's attestation '${plan.attestation.server}'`) ||
    (plan.attestation.devices !== "none" && `this device cannot show the attestation '${plan.attestation.devices}'`) ||
    (task.asks.kind === "train" && (task.asks.encoded === null) !== (plan.aggregation.kind === "plain") &&
      "the task sums updates in another way than its plan");
  if (wrong) throw new Refused(`${wrong}.`);
}

/** A file by its digest, in as many pieces as it takes. Throws: Unanswered; Refused where it is another. */
async function* file({ path, bytes, sha256: wanted }: { path: string; bytes: number; sha256: string }): Steps<Bytes> {
  if (path !== `/v1/models/${wanted}`) throw new Refused("a file's path is not its digest.");
  const whole = new Uint8Array(bytes);
  let have = 0;
  for (let piece = 0; piece < RANGES && have < bytes; piece++) {
    const ranged = have > 0 ? { range: `bytes=${have}-` } : {};
    const answer = yield* fetched(request("GET", path, { headers: ranged, mostBytes: bytes - have, seconds: 600 }), 206);
    if (answer.status === 200) have = 0; // all of it once more
    if (have + answer.body.length > bytes) throw new Refused("a file is longer than it should be.");
    whole.set(answer.body, have);
    have += answer.body.length;
    if (answer.whole && have < bytes) break;
  }
  if (have < bytes) throw new Unanswered(`${have} of ${bytes} bytes of a file came.`);
  if (toHex(await sha256(whole)) !== wanted) throw new Refused("a file is not the one that was named.");
  return whole;
}

/** Sends the same bytes until a receipt comes, or the round is over. */
async function* sent(device: Device, operator: KnownOperator, { assignment, secret }: Assignment, body: Body): Steps<Turn> {
  const { record } = device;
  const sha = toHex(await sha256(body.bytes));
  const report = { task: body.task.task, bytes: body.bytes.length, sha256: sha, aggregation: body.aggregation, received: false, why: body.why };
  await record.keepReport(report);
  const early = body.leaves - device.clock();
  if (early > 0) yield { kind: "pause", seconds: early };
  const says = request("POST", `/v1/reports/${assignment}`, { secret, report: body.bytes, sha, seconds: 300 });
  let why = "no receipt came before the round ended.";
  for (let wait = 1; device.clock() < body.task.deadline; wait = Math.min(2 * wait, 60)) {
    const came = yield says;
    if (came.kind === "answered" && came.status === 200) {
      try {
        const signed = readSigned(came.body);
        const receipt = readReceipt(signed.document);
        const ours = receipt.assignment === assignment && receipt.sha256 === sha;
        if (ours && (await isSigned("receipt", signed.document, signed.signature, operator.key))) {
          await record.keepReport({ ...report, received: true });
          return ended("reported", body.why === null ? "the operator signed for the report." : `it had nothing to say: ${body.why}`, {
            after: 1, before: 5,
          });
        }
        why = "what came for a receipt is none of this report.";
      } catch (thrown) {
        if (!(thrown instanceof Malformed)) throw thrown;
        why = thrown.message;
      }
    } else if (came.kind === "answered" && !mayHelp(came.status)) {
      return ended("lost", `the server did not take the report: ${problemOf(came)}`);
    } else {
      why = came.kind === "failed" ? came.why : came.kind === "answered" ? problemOf(came) : why;
    }
    yield { kind: "pause", seconds: retryAfter(came) ?? wait * (1 + 2 * device.random()) };
  }
  return ended("lost", why);
}

/** Whether the same request may be answered otherwise later. */
function mayHelp(status: number): boolean {
  return status === 408 || status === 503 || status === 200;
}

function retryAfter(came: Came): number | null {
  const said = came.kind === "answered" ? came.headers["retry-after"] : undefined;
  return said !== undefined && /^[0-9]{1,4}$/.test(said) ? Number(said) : null;
}

function problemOf(answer: Answered): string {
  try {
    const { type, detail } = readProblem(answer.body);
    return `${type}: ${detail}`;
  } catch {
    return `status ${answer.status}.`;
  }
}

/** A token of this epoch, or what becomes of the turn. */
async function* withToken(device: Device, operator: KnownOperator): Steps<string | (Turn & { readonly answer?: never })> {
  const { record, policy } = device;
  const signed = readSigned((yield* fetched(request("GET", "/v1/tokens/key"))).body);
  if (!(await isSigned("token-key", signed.document, signed.signature, operator.key))) yield* anotherKey(device, operator);
  const log = yield* shownLog();
  await believe(record, operator, log);
  const key = readTokenKey(signed.document);
  checkTokenKey(key, await digest(signed.document), log);
  const now = device.clock();
  await record.endEpochs(operator, now);
  if (now >= key.ends || now + 60 * policy.clock_minutes < key.opens) throw new Refused("the epoch of the operator's tokens is not now.");
  const known = record.tokens(operator);
  if (known.some((each) => each.epoch > key.epoch)) throw new Refused("the operator's tokens are of an earlier epoch than those of this device.");
  const ours = known.find((each) => each.epoch === key.epoch);
  if (ours?.tokens) return yield* shownToken(device, operator, ours, ours.tokens);
  if (device.enrolmentCode === null) throw new Refused("the operator enrols devices, and this one has no code.");
  return yield* newTokens(device, operator, key, ours ?? null);
}

async function* shownToken(
  { record, clock }: Device, operator: KnownOperator, ours: EpochTokens, tokens: readonly string[],
): Steps<string | (Turn & { readonly answer?: never })> {
  const token = tokens[ours.shown];
  if (token === undefined) throw new Refused("this device showed all of its tokens of this epoch.");
  if (clock() < ours.showFrom) return ended("idle", "its first token is shown later.", justAt(ours.showFrom - clock()));
  await record.keepTokens(operator, { ...ours, shown: ours.shown + 1 }); // no token twice, redeemed or not
  return token;
}

function justAt(seconds: number): { readonly after: number; readonly before: number } {
  return { after: seconds, before: seconds };
}

async function* newTokens(
  device: Device, operator: KnownOperator, key: TokenKey, stored: EpochTokens | null,
): Steps<Turn & { readonly answer?: never }> {
  const { record, policy } = device;
  let ours = stored;
  if (ours === null) {
    const made = await Promise.all(Array.from({ length: key.batch }, () => blinded(tokenMessage(key.epoch), key)));
    const says = tokenRequest(device.enrolmentCode ?? "", key.epoch, made.map((each) => each.sent));
    ours = { epoch: key.epoch, ends: key.ends, request: says, blinded: made, tokens: null, shown: 0, showFrom: 0 };
    await record.keepTokens(operator, ours); // a code has one batch: only the same request is answered again
  }
  const answer = yield* asked(request("POST", "/v1/tokens", { json: ours.request }));
  refuseStatus(answer, 200);
  const { epoch, signatures } = readBlindSignatures(answer.body);
  if (epoch !== key.epoch || signatures.length !== ours.blinded.length) throw new Refused("the operator signed other tokens than were asked for.");
  const tokens = await Promise.all(ours.blinded.map((each, at) => finalized(each, signatures[at] as string, key)));
  const later = device.random() * policy.show_after_s;
  await record.keepTokens(operator, { ...ours, tokens, showFrom: device.clock() + later });
  return ended("idle", "it has tokens now, and shows the first at another time.", justAt(later));
}

interface Says {
  readonly json?: string;
  readonly report?: Bytes;
  readonly sha?: string;
  readonly secret?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly mostBytes?: number;
  readonly seconds?: number;
}

function request(method: Request["method"], path: string, says: Says = {}): Request {
  const headers: Record<string, string> = { ...says.headers };
  if (says.json !== undefined) headers["content-type"] = "application/json";
  if (says.report !== undefined) headers["content-type"] = "application/octet-stream";
  if (says.sha !== undefined) headers["x-content-sha256"] = says.sha;
  if (says.secret !== undefined) headers["authorization"] = `Bearer ${says.secret}`;
  const body = says.report ?? (says.json === undefined ? null : utf8(says.json));
  return { kind: "request", method, path, headers, body, mostBytes: says.mostBytes ?? MOST_JSON, seconds: says.seconds ?? ANSWER_SECONDS };
}

/** One answer, whole. Throws: Unanswered. */
async function* asked(says: Request): Steps<Answered> {
  const came = yield says;
  if (came.kind === "failed") throw new Unanswered(came.why);
  if (came.kind !== "answered" || !came.whole) throw new Unanswered("an answer was cut off.");
  return came;
}

/** An answer to what may be asked again: of status 200, or `also`. Throws: Unanswered after some tries. */
async function* fetched(says: Request, also: number | null = null): Steps<Answered> {
  let why = "";
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const came = yield says;
    if (came.kind === "answered" && (came.status === 200 || came.status === also)) {
      if (came.whole || came.status === 206 || says.path.startsWith("/v1/models/")) return came;
      why = "an answer was cut off.";
    } else if (came.kind === "answered" && !mayHelp(came.status)) {
      throw new Unanswered(problemOf(came));
    } else {
      why = came.kind === "failed" ? came.why : came.kind === "answered" ? problemOf(came) : "no answer came.";
    }
    if (attempt + 1 < TRIES) yield { kind: "pause", seconds: Math.min(retryAfter(came) ?? 2 ** attempt, 60) };
  }
  throw new Unanswered(why);
}

function refuseStatus(answer: Answered, wanted: number): void {
  if (answer.status !== wanted) throw new Unanswered(problemOf(answer));
}

/** How long a device waits for its next turn, in seconds; `failures` turns in a row gave it nothing. */
export function waitAfter(
  { wait }: Turn, failures: number, lastBefore: number, random: number,
): number {
  if (wait !== null) return wait.after + random * (wait.before - wait.after);
  const [least, most] = [Math.max(1, lastBefore / 300), Math.max(3, lastBefore / 100)];
  const limit = Math.max(15 * 60, lastBefore);
  return Math.min((least + random * (most - least)) * 2 ** Math.max(0, failures - 1), limit);
}

