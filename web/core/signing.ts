/** Ed25519 signatures of texts (RFC 8032), by purpose, and their digests. */

import { fromHex, joined, sha256, toHex, utf8 } from "./bytes.ts";
import { Refused } from "./errors.ts";

export type Purpose = "plan" | "task" | "receipt" | "head" | "token-key" | "hand-over";

const PRIME = 2n ** 255n - 19n;
// The y of a point of order 8: with it, 0, 1 and -1 the y of all eight points of small order.
const Y_OF_ORDER_8 = 55188659117513257062467267217118295137698188065244968500265048394206261417927n;
const U_OF_ORDER_8 = [
  325606250916557431795983626356110631294008115727848805560023387167927233504n,
  39382357235489614581723060781553021112529911719440698176882885853963445705823n,
];

/** The SHA-256 of a text in UTF-8, in digits: by it a plan goes. */
export async function digest(document: string): Promise<string> {
  return toHex(await sha256(utf8(document)));
}

/** Whether an Ed25519 key is a point of small order, however it is written: anybody could sign for it. */
export function isSmallSigningKey(key: Uint8Array): boolean {
  const y = littleEndian(key) % PRIME; // without the sign of x; from p on it is a second way to write y - p
  return [0n, 1n, PRIME - 1n, Y_OF_ORDER_8, PRIME - Y_OF_ORDER_8].includes(y);
}

/** Whether a public key of X25519 is a point of small order: with it anybody would agree. */
export function isSmallAgreementKey(key: Uint8Array): boolean {
  const u = littleEndian(key) % PRIME;
  return [0n, 1n, PRIME - 1n, ...U_OF_ORDER_8].includes(u);
}

function littleEndian(key: Uint8Array): bigint {
  return BigInt("0x" + toHex(Uint8Array.from(key).reverse())) & ((1n << 255n) - 1n);
}

/** A public key, pinned or read. Throws: Refused where it is none, or of small order. */
export function readSigningKey(digits: string): Uint8Array<ArrayBuffer> {
  if (!/^[0-9a-f]{64}$/.test(digits))
    throw new Refused(`an Ed25519 key has 64 lower-case digits; this is '${digits.slice(0, 70)}'.`);
  const key = fromHex(digits);
  if (isSmallSigningKey(key))
    throw new Refused(`the key ${digits.slice(0, 8)}... is a point of small order: anybody could sign for it.`);
  return key;
}

/**
 * Whether a text is signed for a purpose by the key in these digits.
 *
 * Throws: Refused where the key itself is not to be used. A signature that is none is false.
 */
export async function isSigned(purpose: Purpose, document: string, signature: string, key: string): Promise<boolean> {
  const raw = readSigningKey(key);
  if (!/^[0-9a-f]{128}$/.test(signature)) return false;
  let pinned: CryptoKey;
  try {
    pinned = await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);
  } catch {
    return false; // 32 bytes that are no point: nobody signs for it
  }
  const text = joined(utf8(`tacit ${purpose} v2\0`), utf8(document));
  return crypto.subtle.verify("Ed25519", pinned, fromHex(signature), text);
}
