/** Sending a report: the same bytes until a receipt comes, or the round is over. */

import { mayHelp, problemOf, request, retryAfter, type Steps } from "./asks.ts";
import { sha256, toHex } from "./bytes.ts";
import { ended, type Device, type Turn } from "./device.ts";
import { readReceipt, readSigned, type Assignment, type RoundTask } from "./documents.ts";
import { Malformed } from "./errors.ts";
import type { KnownOperator } from "./record.ts";
import { isSigned } from "./signing.ts";

/** A report that is made, and when it leaves. */
export interface Body {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly task: RoundTask;
  readonly leaves: number; // Unix seconds
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
          return ended(
            "reported",
            body.why === null ? "the operator signed for the report." : `it had nothing to say: ${body.why}`,
            {
              after: 1,
              before: 5,
            },
          );
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
