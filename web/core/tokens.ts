/** Tokens of enrolment: blind signatures by RSABSSA-SHA384-PSS-Randomized of RFC 9474, with 2,048 bits. */

import { fromHex, joined, toHex, utf8 } from "./bytes.ts";
import type { ShownLog, TokenKey } from "./documents.ts";
import { Refused } from "./errors.ts";
import { tokenKeyLine } from "./log.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const MODULUS_BYTES = 256;
const HASH_BYTES = 48; // of SHA-384
const SALT_BYTES = 48;
const PREFIX_BYTES = 32; // of randomness before the message, section 4.1

/** What a device keeps of a message while its signer has it. All in digits, so that a record can hold it. */
export interface Blinded {
  readonly prefix: string;
  readonly sent: string;
  readonly inverse: string;
}

/** What the tokens of an epoch sign: `tacit token v1`, a byte 0 and the epoch in 4 bytes. */
export function tokenMessage(epoch: number): Bytes {
  return joined(utf8("tacit token v1\0"), fourBytes(epoch));
}

function fourBytes(number: number): Bytes {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, number);
  return bytes;
}

function random(length: number): Bytes {
  return crypto.getRandomValues(new Uint8Array(length));
}

/** What blinding draws: `blind` is r of section 4.2. */
export interface Draws {
  readonly prefix: Bytes;
  readonly salt: Bytes;
  readonly blind: bigint;
}

function draws(modulus: bigint): Draws {
  return { prefix: random(PREFIX_BYTES), salt: random(SALT_BYTES), blind: below(modulus) };
}

/** A message blinded for the signer of an epoch's tokens. Throws: Refused where the key cannot be used. */
export function blinded(message: Bytes, key: TokenKey): Promise<Blinded> {
  const modulus = usableModulus(key);
  return blindedBy(message, modulus, BigInt(key.exponent), draws(modulus));
}

/** Sections 4.1 and 4.2, for a modulus of whole bytes. Throws: Refused for a message that shares a factor with it. */
export async function blindedBy(message: Bytes, modulus: bigint, exponent: bigint, drawn: Draws): Promise<Blinded> {
  const { prefix, salt, blind } = drawn;
  const bytes = Math.ceil(modulus.toString(16).length / 2);
  const encoded = toNumber(await pssEncoded(joined(prefix, message), salt, bytes));
  if (gcd(encoded, modulus) !== 1n) throw new Refused("the key of the tokens shares a factor with a message.");
  const sent = (encoded * power(blind, exponent, modulus)) % modulus;
  return { prefix: toHex(prefix), sent: digits(sent, bytes), inverse: digits(inverted(blind, modulus), bytes) };
}

/** The token of a blind signature (section 4.4), 292 bytes in digits; null where it signs nothing. */
export async function finalized(kept: Blinded, signature: string, key: TokenKey): Promise<string | null> {
  const modulus = usableModulus(key);
  const whole = (BigInt("0x" + signature) * BigInt("0x" + kept.inverse)) % modulus;
  const message = joined(fromHex(kept.prefix), tokenMessage(key.epoch));
  if (!(await isSignature(message, digits(whole), key))) return null;
  return toHex(fourBytes(key.epoch)) + kept.prefix + digits(whole);
}

/** Whether a signature of RSASSA-PSS with SHA-384 and a salt of 48 bytes holds for a prepared message. */
export async function isSignature(prepared: Bytes, signature: string, key: TokenKey): Promise<boolean> {
  const jwk = { kty: "RSA", n: base64url(fromHex(key.modulus)), e: base64url(trimmed(fourBytes(key.exponent))) };
  const algorithm = { name: "RSA-PSS", hash: "SHA-384" };
  const verifier = await crypto.subtle.importKey("jwk", jwk, algorithm, false, ["verify"]);
  return crypto.subtle.verify({ name: "RSA-PSS", saltLength: SALT_BYTES }, verifier, fromHex(signature), prepared);
}

/**
 * Checks that everybody has this key: it is in the log, and the only one of its epoch.
 *
 * `document` is the digest of its text. No memory is needed: every device refuses two keys of one epoch.
 * Throws: Refused.
 */
export function checkTokenKey(key: TokenKey, document: string, log: ShownLog): void {
  const ofEpoch = log.entries.filter((line) => line.startsWith(`token-key ${key.epoch} `));
  if (ofEpoch.length !== 1 || ofEpoch[0] !== tokenKeyLine(key.epoch, document)) {
    throw new Refused(`the key of the tokens is not the one key of epoch ${key.epoch} in the operator's log.`);
  }
}

function usableModulus(key: TokenKey): bigint {
  const modulus = BigInt("0x" + key.modulus);
  if (modulus >> 2047n !== 1n || modulus % 2n === 0n)
    throw new Refused("the key of the tokens is no RSA key of 2,048 bits.");
  if (key.exponent % 2 === 0) throw new Refused("the key of the tokens has an even exponent.");
  return modulus;
}

/** EMSA-PSS-ENCODE of RFC 8017, section 9.1.1, for a bit less than these bytes: SHA-384, MGF1 of it, this salt. */
async function pssEncoded(message: Bytes, salt: Bytes, bytes: number): Promise<Bytes> {
  const hash = await sha384(joined(new Uint8Array(8), await sha384(message), salt));
  const block = new Uint8Array(bytes - HASH_BYTES - 1);
  block.set(salt, block.length - SALT_BYTES);
  block[block.length - SALT_BYTES - 1] = 1;
  const mask = await mgf1(hash, block.length);
  const masked = block.map((byte, at) => byte ^ (mask[at] as number));
  masked[0] = (masked[0] as number) & 0x7f; // one bit less than the modulus
  return joined(masked, hash, Uint8Array.of(0xbc));
}

async function mgf1(seed: Bytes, length: number): Promise<Bytes> {
  const blocks = Array.from({ length: Math.ceil(length / HASH_BYTES) }, (_, at) => sha384(joined(seed, fourBytes(at))));
  return joined(...(await Promise.all(blocks))).slice(0, length);
}

async function sha384(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-384", bytes));
}

/** Uniform from 1 to below `modulus`, by drawing again: a remainder would prefer small numbers. */
function below(modulus: bigint): bigint {
  for (;;) {
    const drawn = toNumber(random(MODULUS_BYTES));
    if (drawn > 0n && drawn < modulus && gcd(drawn, modulus) === 1n) return drawn;
  }
}

function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let result = 1n;
  for (let square = base % modulus, rest = exponent; rest > 0n; rest >>= 1n, square = (square * square) % modulus) {
    if (rest & 1n) result = (result * square) % modulus;
  }
  return result;
}

function gcd(first: bigint, second: bigint): bigint {
  let [a, b] = [first, second];
  while (b > 0n) [a, b] = [b, a % b];
  return a;
}

function inverted(number: bigint, modulus: bigint): bigint {
  let [a, b, x, y] = [number % modulus, modulus, 1n, 0n];
  while (b > 0n) {
    const quotient = a / b;
    [a, b, x, y] = [b, a % b, y, x - quotient * y];
  }
  return ((x % modulus) + modulus) % modulus;
}

function toNumber(bytes: Uint8Array): bigint {
  return BigInt("0x" + toHex(bytes));
}

function digits(number: bigint, bytes: number = MODULUS_BYTES): string {
  return number.toString(16).padStart(2 * bytes, "0");
}

function trimmed(bytes: Uint8Array): Uint8Array {
  return bytes.slice(bytes.findIndex((byte) => byte > 0));
}

function base64url(bytes: Uint8Array): string {
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
