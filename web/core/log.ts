/** The operator's transparency log: a Merkle tree (RFC 9162, section 2.1) of lines, which a device fetches whole. */

import { joined, sha256, toHex, utf8 } from "./bytes.ts";
import { Refused } from "./errors.ts";
import { readTreeHead, type ShownLog, type Signed } from "./log_documents.ts";
import { isSigned } from "./signing.ts";

export * from "./log_lines.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** A list of entries with the head that its operator signed: with two that differ anybody can show what it did. */
export interface KeptLog {
  readonly head: Signed;
  readonly entries: readonly string[];
}

/** The operator signed two lists that do not begin alike: no device believes it any more. */
export class TwoLogs extends Refused {}

const AT_ONCE = 4096; // hashes that wait for WebCrypto together: more would only fill memory

/** SHA-256 of a byte 0 and the line. */
export function leafOf(line: string): Promise<Bytes> {
  return sha256(joined(Uint8Array.of(0), utf8(line)));
}

/**
 * The root over leaves, (size, 32 bytes).
 *
 * Level by level, a last one without a neighbour going up as it is: the same tree as the RFC's, which splits at the
 * largest power of two. Throws: RangeError for no leaves.
 */
export async function rootOf(leaves: readonly Bytes[]): Promise<Bytes> {
  let level = leaves;
  while (level.length > 1) {
    const pairs = Math.floor(level.length / 2);
    const below = level;
    const above = await many(pairs, (at) =>
      sha256(joined(Uint8Array.of(1), below[2 * at] as Bytes, below[2 * at + 1] as Bytes)),
    );
    if (level.length % 2 === 1) above.push(level[level.length - 1] as Bytes);
    level = above;
  }
  const root = level[0];
  if (root === undefined) throw new RangeError("a log without entries has no root here");
  return root;
}

async function many(count: number, made: (at: number) => Promise<Bytes>): Promise<Bytes[]> {
  const found: Bytes[] = [];
  for (let first = 0; first < count; first += AT_ONCE) {
    const length = Math.min(AT_ONCE, count - first);
    found.push(...(await Promise.all(Array.from({ length }, (_, at) => made(first + at)))));
  }
  return found;
}

/** Checks that a shown log is what its operator signed. Throws: Refused, or Malformed for a head that is none. */
export async function checkLog(shown: ShownLog, key: string): Promise<void> {
  if (!(await isSigned("head", shown.head.document, shown.head.signature, key))) {
    throw new Refused("the operator did not sign the head of its log.");
  }
  const head = readTreeHead(shown.head.document);
  if (head.size !== shown.entries.length) {
    throw new Refused(`the log has ${shown.entries.length} entries, and its head says ${head.size}.`);
  }
  const root = await rootOf(await many(shown.entries.length, (at) => leafOf(shown.entries[at] as string)));
  if (toHex(root) !== head.root) throw new Refused("the root of the log is not that of its entries.");
}

/**
 * What a device keeps after it was shown a log: the longer of the two.
 *
 * Throws: TwoLogs where they do not begin alike.
 */
export function longerOf(kept: KeptLog | null, shown: ShownLog): KeptLog {
  if (kept === null) return shown;
  const common = Math.min(kept.entries.length, shown.entries.length);
  for (let at = 0; at < common; at++) {
    if (kept.entries[at] !== shown.entries[at]) {
      throw new TwoLogs(
        `the operator signed two logs that differ from entry ${at} on: this device asks it for nothing more.`,
      );
    }
  }
  return shown.entries.length > kept.entries.length ? shown : kept;
}
