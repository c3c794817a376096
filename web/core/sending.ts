/** Sending a report: the same bytes until a receipt comes, or the round is over. */

import { isFinal, problemOf, request, retryAfter, type Answered, type Steps } from "./asks.ts";
import { sha256, toHex } from "./bytes.ts";
import { ended, type Device, type Turn } from "./device.ts";
import { readReceipt, readSigned, type Assignment, type RoundTask } from "./documents.ts";
import { Malformed } from "./errors.ts";
import type { KnownOperator, Participation } from "./record.ts";
import { isSigned } from "./signing.ts";

const SEND_SECONDS = 300;
const FIRST_WAIT = 0.5; // seconds, to twice that; each further one is twice as long
const LONGEST_WAIT = 64;

/** A report that is made, and whose time has come. */
export interface Body {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly task: RoundTask;
  readonly participation: Participation;
  readonly why: string | null; // it has nothing to say
  readonly aggregation: string;
}

/** Sends the same bytes until a receipt comes, or the round is over. */
export async function* sent(
  device: Device,
  operator: KnownOperator,
  { assignment, secret }: Assignment,
  body: Body,
): Steps<Turn> {
  const { record } = device;
  const sha = toHex(await sha256(body.bytes));
  const report = {
    task: body.task.task,
    bytes: body.bytes.length,
    sha256: sha,
    aggregation: body.aggregation,
    received: false,
    why: body.why,
  };
  await record.keepReport(report);
  const says = request("POST", `/v1/reports/${assignment}`, { secret, report: body.bytes, sha, seconds: SEND_SECONDS });
  let [why, reached] = ["no receipt came before the round ended.", false];
  for (let wait = FIRST_WAIT; device.clock() < body.task.deadline; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    const came = yield says;
    reached ||= !(came.kind === "failed" && came.unreached === true);
    if (came.kind === "answered") {
      if (await isReceipt(came, assignment, sha, operator.key)) {
        await record.keepReport({ ...report, received: true });
        const nothing = body.why === null ? null : `it had nothing to say: ${body.why}`;
        return ended("reported", nothing ?? "the operator signed for the report.", { after: 1, before: 5 });
      }
      why = `the server did not take the report: ${problemOf(came)}`;
      if (isFinal(came)) return ended("lost", why);
    } else if (came.kind === "failed") {
      why = came.why;
    }
    const asked = retryAfter(came);
    yield { kind: "pause", from: asked ?? wait, to: asked ?? 2 * wait };
  }
  if (reached) return ended("lost", why);
  await record.takeBack(body.participation); // no byte of a report left the device
  return ended("unanswered", `the round ended before anybody could be reached, so nothing is spent: ${why}`);
}

async function isReceipt(came: Answered, assignment: string, sha: string, key: string): Promise<boolean> {
  if (came.status !== 200 || !came.whole) return false;
  try {
    const signed = readSigned(came.body);
    const receipt = readReceipt(signed.document);
    const ours = receipt.assignment === assignment && receipt.sha256 === sha;
    return ours && (await isSigned("receipt", signed.document, signed.signature, key));
  } catch (thrown) {
    if (thrown instanceof Malformed) return false;
    throw thrown;
  }
}
