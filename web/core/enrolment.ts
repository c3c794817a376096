/** Tokens within a turn: a device that the operator enrolled shows one, or asks for an epoch's. */

import { asked, refuseStatus, request, Unanswered, type Steps } from "./asks.ts";
import { anotherKey, keep, shownLog } from "./belief.ts";
import { ended, type Device, type Turn } from "./device.ts";
import { readBlindSignatures, readSigned, readTokenKey, tokenRequest, type TokenKey } from "./documents.ts";
import { Malformed, Refused } from "./errors.ts";
import { checkLog } from "./log.ts";
import type { EpochTokens, KnownOperator } from "./record.ts";
import { digest, isSigned } from "./signing.ts";
import { blinded, checkTokenKey, finalized, tokenMessage } from "./tokens.ts";

/** A token of this epoch, or what becomes of the turn. */
export async function* withToken(device: Device, operator: KnownOperator): Steps<string | Turn> {
  const { record } = device;
  const answer = yield* asked(request("GET", "/v1/tokens/key"));
  refuseStatus(answer, 200);
  const signed = readSigned(answer.body);
  if (!(await isSigned("token-key", signed.document, signed.signature, operator.key)))
    yield* anotherKey(record, operator);
  const log = yield* shownLog();
  await checkLog(log, operator.key);
  const key = keyIn(signed.document);
  checkTokenKey(key, await digest(signed.document), log);
  await keep(record, operator, log);
  const known = record.tokens(operator);
  if (known.some((each) => each.epoch > key.epoch))
    throw new Refused("the operator's tokens are of an earlier epoch than those of this device.");
  await record.endEpochs(operator, key.epoch);
  const ours = known.find((each) => each.epoch === key.epoch);
  if (ours?.tokens) return yield* shownToken(device, operator, ours, ours.tokens);
  if (device.enrolmentCode === null) throw new Unanswered("the operator enrols devices, and this one has no code.");
  return yield* newTokens(device, operator, key, ours ?? null);
}

/** Throws: Refused for a text that is no key, since the operator signed it. */
function keyIn(document: string): TokenKey {
  try {
    return readTokenKey(document);
  } catch (thrown) {
    if (!(thrown instanceof Malformed)) throw thrown;
    throw new Refused(`the operator's key of tokens cannot be followed: ${thrown.message}`);
  }
}

async function* shownToken(
  { record }: Device,
  operator: KnownOperator,
  ours: EpochTokens,
  tokens: readonly string[],
): Steps<string | Turn> {
  const token = tokens[tokens.length - 1 - ours.shown];
  if (token === undefined) throw new Refused("this device showed all of its tokens of this epoch.");
  await record.keepTokens(operator, { ...ours, shown: ours.shown + 1 }); // no token twice, redeemed or not
  return token;
}

async function* newTokens(
  device: Device,
  operator: KnownOperator,
  key: TokenKey,
  stored: EpochTokens | null,
): Steps<Turn> {
  const { record, policy } = device;
  let ours = stored;
  if (ours === null) {
    const made = await Promise.all(Array.from({ length: key.batch }, () => blinded(tokenMessage(key.epoch), key)));
    const says = tokenRequest(
      device.enrolmentCode ?? "",
      key.epoch,
      made.map((each) => each.sent),
    );
    ours = { epoch: key.epoch, request: says, blinded: made, tokens: null, shown: 0 };
    await record.keepTokens(operator, ours); // a code has one batch: only the same request is answered again
  }
  const answer = yield* asked(request("POST", "/v1/tokens", { json: ours.request }));
  refuseStatus(answer, 200);
  const { epoch, signatures } = readBlindSignatures(answer.body);
  if (epoch !== key.epoch || signatures.length !== ours.blinded.length)
    throw new Unanswered("the operator signed other tokens than were asked for.");
  const tokens: string[] = [];
  for (const [at, each] of ours.blinded.entries()) {
    const token = await finalized(each, signatures[at] as string, key);
    if (token === null) throw new Unanswered("the operator signed a token that is not valid.");
    tokens.push(token);
  }
  await record.keepTokens(operator, { ...ours, tokens });
  return ended("idle", "it has tokens now, and shows the first at another time.", {
    after: 0,
    before: policy.show_after_s,
  });
}
