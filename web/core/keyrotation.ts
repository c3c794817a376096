/** Another key of the operator: a hand-over that both keys signed, and that everybody can see in the log. */

import { readKeyRotation, type ShownLog, type SignedKeyRotation } from "./documents.ts";
import { Refused } from "./errors.ts";
import { checkLog, handOverLine } from "./log.ts";
import { digest, isSigned } from "./signing.ts";

/**
 * The new key of an operator, in digits. `before`: the keys that the device believed earlier, and never does again.
 *
 * Throws: Refused where the hand-over is not from the pinned key, not signed by both, or not in the log of the new one.
 */
export async function handedOver(
  signed: SignedKeyRotation,
  log: ShownLog,
  pinned: string,
  before: readonly string[],
): Promise<string> {
  const said = readKeyRotation(signed.document);
  if (said.old !== pinned) {
    throw new Refused(
      "the operator's hand-over is not from the key that this device pinned: it has to be given the new one.",
    );
  }
  if (said.new === said.old) throw new Refused("the operator's hand-over names one key twice.");
  if (before.includes(said.new)) throw new Refused("the operator's hand-over goes back to a key that it gave up.");
  const byOld = await isSigned("hand-over", signed.document, signed.by_old, said.old);
  const byNew = await isSigned("hand-over", signed.document, signed.by_new, said.new);
  if (!byOld || !byNew) throw new Refused("the operator's hand-over is not signed by both of its keys.");
  await checkLog(log, said.new);
  if (!log.entries.includes(handOverLine(await digest(signed.document)))) {
    throw new Refused("the operator's log does not show its hand-over: whoever stole a key could have signed it.");
  }
  return said.new;
}
