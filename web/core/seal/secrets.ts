/** The functions that all messages of secure aggregation have in common (docs/secure-aggregation-protocols.md). */

import { chacha20poly1305 } from "@noble/ciphers/chacha.js";

import { joined, utf8 } from "../bytes.ts";
import { Refused } from "../errors.ts";
import { behindItsLength } from "./wire.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** So many random bytes. Every secret follows from what one gives; `random` unless test vectors fix them. */
export type Draw = (size: number) => Bytes;

/** So many bytes more of a stream, in the order in which they are asked for. */
export type Stream = (size: number) => Promise<Bytes>;

export const KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;
export const TAG_BYTES = 16;
export const SEALED_BYTES = KEY_BYTES + TAG_BYTES; // by which a sealed box is longer than what is in it

const LABEL = "tacit secure aggregation 1 ";
const MOST_AT_ONCE = 65536; // bytes that a browser draws at once
const NO_NONCE = new Uint8Array(12); // under a key that is used once
// RFC 8410: a private key of 32 bytes as WebCrypto reads it.
const PRIVATE = {
  X25519: [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x6e, 4, 0x22, 4, 0x20],
  Ed25519: [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20],
};

/** Bytes of the operating system. */
export const random: Draw = (size) => {
  const drawn = new Uint8Array(size);
  for (let at = 0; at < size; at += MOST_AT_ONCE) crypto.getRandomValues(drawn.subarray(at, at + MOST_AT_ONCE));
  return drawn;
};

let zeros = new Uint8Array(0); // what streams encrypt: one for all, as no number of it ever changes

/** stream(seed): AES-256 in counter mode from counter 0. */
export function stream(seed: Bytes): Stream {
  const key = crypto.subtle.importKey("raw", seed, "AES-CTR", false, ["encrypt"]);
  let position = 0;
  return async (size) => {
    const skipped = position % 16;
    const counter = new Uint8Array(16);
    new DataView(counter.buffer).setBigUint64(8, BigInt((position - skipped) / 16));
    position += size;
    if (zeros.length < skipped + size) zeros = new Uint8Array(skipped + size);
    return new Uint8Array(
      await crypto.subtle.encrypt({ name: "AES-CTR", counter, length: 64 }, await key, zeros.subarray(0, skipped + size)),
      skipped,
    );
  };
}

/** derived(secret, purpose, context...): 32 bytes. */
export async function derived(secret: Bytes, purpose: string, ...context: readonly Uint8Array[]): Promise<Bytes> {
  const info = joined(...[utf8(LABEL + purpose), ...context].map(behindItsLength));
  const key = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
  return new Uint8Array(
    await crypto.subtle.deriveBits(
      { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(0), info },
      key,
      8 * KEY_BYTES,
    ),
  );
}

/** An X25519 key that agrees with others, or an Ed25519 key that signs; with what others see of it. */
export interface KeyPair {
  readonly key: CryptoKey;
  readonly public: Bytes;
}

async function keyPair(kind: "X25519" | "Ed25519", secret: Uint8Array): Promise<KeyPair> {
  const document = joined(Uint8Array.from(PRIVATE[kind]), secret);
  const use: KeyUsage = kind === "X25519" ? "deriveBits" : "sign";
  const key = await crypto.subtle.importKey("pkcs8", document, kind, true, [use]);
  // WebCrypto tells the public half of a private key in its JSON form alone.
  const { x } = await crypto.subtle.exportKey("jwk", key);
  const digits = atob((x ?? "").replaceAll("-", "+").replaceAll("_", "/"));
  return { key, public: Uint8Array.from(digits, (each) => each.charCodeAt(0)) };
}

/** An identity of 32 random bytes. */
export function identityOf(secret: Uint8Array): Promise<KeyPair> {
  return keyPair("Ed25519", secret);
}

/** A key of 32 random bytes that agrees with others. */
export function agreementKeyOf(secret: Uint8Array): Promise<KeyPair> {
  return keyPair("X25519", secret);
}

/** agreed(own, other's, purpose, context...): 32 bytes. Throws: Refused where the other's key is of small order. */
export async function agreed(
  own: KeyPair,
  other: Bytes,
  purpose: string,
  ...context: readonly Uint8Array[]
): Promise<Bytes> {
  let shared: Bytes;
  try {
    const theirs = await crypto.subtle.importKey("raw", other, "X25519", false, []);
    shared = new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: theirs }, own.key, 8 * KEY_BYTES));
  } catch {
    shared = new Uint8Array(KEY_BYTES);
  }
  if (shared.every((each) => each === 0))
    throw new Refused("a key of the sealed round is no point that two parties may agree with.");
  const both = isBelow(own.public, other) ? [own.public, other] : [other, own.public];
  return derived(shared, purpose, ...both, ...context);
}

/** Bytes in the order of a dictionary, of two keys. */
function isBelow(one: Uint8Array, other: Uint8Array): boolean {
  const place = one.findIndex((each, at) => each !== other[at]);
  return place >= 0 && one[place]! < other[place]!;
}

/** sealed(public, content, associated): a box for whoever holds the private key. */
export async function sealed(other: Bytes, content: Uint8Array, associated: Uint8Array, draw: Stream): Promise<Bytes> {
  const ephemeral = await agreementKeyOf(await draw(KEY_BYTES));
  const key = await agreed(ephemeral, other, "sealed box");
  return joined(ephemeral.public, chacha20poly1305(key, NO_NONCE, associated).encrypt(content));
}

/** tag(key, data): 16 bytes. A key tags one message, ever. */
export async function tag(key: Bytes, data: Bytes): Promise<Bytes> {
  const imported = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
  const made = crypto.subtle.encrypt(
    { name: "AES-GCM", iv: NO_NONCE, additionalData: data },
    imported,
    new Uint8Array(0),
  );
  return new Uint8Array(await made);
}

/** signature(purpose, message): 64 bytes. */
export async function signature(identity: KeyPair, purpose: string, message: Uint8Array): Promise<Bytes> {
  return new Uint8Array(
    await crypto.subtle.sign("Ed25519", identity.key, joined(utf8(`${LABEL}${purpose}\0`), message)),
  );
}
