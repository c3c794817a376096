/** An operator, for tests: a key, signatures, a log, a key of tokens. */

import { fromHex, joined, toHex, utf8 } from "../core/bytes.ts";
import type { ShownLog, Signed, TokenKey } from "../core/documents.ts";
import { leafOf, rootOf } from "../core/log.ts";
import type { Purpose } from "../core/signing.ts";

export interface Operator {
  readonly key: string;
  sign(purpose: Purpose, document: string): Promise<string>;
  signed(purpose: Purpose, document: string): Promise<Signed>;
  log(entries: readonly string[]): Promise<ShownLog>;
}

export async function newOperator(): Promise<Operator> {
  return operatorOf(crypto.getRandomValues(new Uint8Array(32)));
}

const PKCS8 = fromHex("302e020100300506032b657004220420"); // what stands before the 32 bytes of a private key

/** The operator of a private key of 32 bytes. */
export async function operatorOf(secret: Uint8Array): Promise<Operator> {
  const privateKey = await crypto.subtle.importKey("pkcs8", joined(PKCS8, secret), "Ed25519", true, ["sign"]);
  const { x = "" } = await crypto.subtle.exportKey("jwk", privateKey);
  const sign = async (purpose: Purpose, document: string): Promise<string> =>
    toHex(
      new Uint8Array(await crypto.subtle.sign("Ed25519", privateKey, utf8(`tacit ${purpose} v2\0${document}`))),
    );
  const signed = async (purpose: Purpose, document: string) => ({ document, signature: await sign(purpose, document) });
  return {
    key: Buffer.from(x, "base64url").toString("hex"),
    sign,
    signed,
    log: async (entries) => {
      const root = toHex(await rootOf(await Promise.all(entries.map(leafOf))));
      return { head: await signed("head", JSON.stringify({ size: entries.length, root })), entries };
    },
  };
}

/** A key of tokens with the signer's power: what it is sent to the private exponent. */
export async function newSigner(epoch: number): Promise<{ key: TokenKey; sign: (sent: string) => string }> {
  const algorithm = { name: "RSA-PSS", modulusLength: 2048, publicExponent: Uint8Array.of(1, 0, 1), hash: "SHA-384" };
  const pair = (await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"])) as CryptoKeyPair;
  const { n = "", d = "" } = await crypto.subtle.exportKey("jwk", pair.privateKey);
  const hex = (text: string) => Buffer.from(text, "base64url").toString("hex");
  const [modulus, secret] = [BigInt("0x" + hex(n)), BigInt("0x" + hex(d))];
  const sign = (sent: string): string => {
    let [result, square] = [1n, BigInt("0x" + sent)];
    for (let rest = secret; rest > 0n; rest >>= 1n, square = (square * square) % modulus) {
      if (rest & 1n) result = (result * square) % modulus;
    }
    return result.toString(16).padStart(512, "0");
  };
  return { key: { epoch, opens: 0, ends: 1e10, batch: 3, modulus: hex(n), exponent: 65_537 }, sign };
}
