/** What a device says when it does not go on. Each is one sentence for its owner; nothing of it leaves the device. */

/** A plan, task, policy, record or clock forbids it: the device gives its place back, without a reason. */
export class Refused extends Error {
  override readonly name = "Refused";
}

/** A text that the protocol does not allow: of a wrong type, outside its bounds, with a key twice. */
export class Malformed extends Error {
  override readonly name = "Malformed";
}

/** The device cannot work, and its owner has to do something: a damaged record, a policy that cannot be read. */
export class CannotWork extends Error {
  override readonly name = "CannotWork";
}

/** What went wrong, in words, of anything that was thrown. */
export function saidBy(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
