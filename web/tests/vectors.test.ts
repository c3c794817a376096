/** The vectors that both programs read (tests/vectors), made by the Python side. */

import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

import { fromHex, toHex } from "../core/bytes.ts";
import * as documents from "../core/documents.ts";
import { Malformed, Refused } from "../core/errors.ts";
import { handedOver } from "../core/keyrotation.ts";
import { checkLog, leafOf, longerOf, rootOf, TwoLogs, type KeptLog } from "../core/log.ts";
import { digest, isSigned, isSmallAgreementKey, isSmallSigningKey, type Purpose } from "../core/signing.ts";
import { blinded, blindedBy, checkTokenKey, finalized, isSignature } from "../core/tokens.ts";

const FOLDER = new URL("../../tests/vectors/", import.meta.url);

interface Named {
  readonly name: string;
}

function vectors<T>(name: string): T | null {
  const file = new URL(`${name}.json`, FOLDER);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as T) : null;
}

async function holds(check: () => Promise<unknown>): Promise<boolean> {
  try {
    await check();
    return true;
  } catch (thrown) {
    if (thrown instanceof Refused || thrown instanceof Malformed) return false;
    throw thrown;
  }
}

interface DocumentCase extends Named {
  readonly kind: string;
  readonly text?: string;
  readonly bytes?: string;
  readonly plus?: string;
  readonly times?: number;
  readonly accepted: boolean;
  readonly means?: unknown;
}

const READERS: Readonly<Record<string, (said: string | Uint8Array) => unknown>> = {
  Answer: documents.readAnswer,
  Plan: documents.readPlan,
  RoundTask: documents.readTask,
  Problem: documents.readProblem,
  Signed: documents.readSigned,
  SignedPlan: documents.readSignedPlan,
  ShownLog: documents.readShownLog,
  TokenKey: documents.readTokenKey,
  Receipt: documents.readReceipt,
  TreeHead: documents.readTreeHead,
  KeyRotation: documents.readKeyRotation,
  SignedKeyRotation: documents.readSignedKeyRotation,
  BlindSignatures: documents.readBlindSignatures,
};

const documentsSaid = vectors<{ readonly cases: readonly DocumentCase[] }>("documents");
// CheckIn, TokenRequest and InclusionProof are read by servers and by programs for people: a device reads none.
// "received" may be nothing but true; that 1 is taken for true is an accident of the other program.
const read = documentsSaid?.cases.filter(({ kind, name }) => READERS[kind] && name !== "receipt: received 1") ?? [];

describe.skipIf(documentsSaid === null)("documents", () => {
  test.each(read)("$kind: $name", ({ kind, text = "", bytes, plus = "", times = 0, accepted, means }) => {
    const reader = READERS[kind] as (said: string | Uint8Array) => unknown;
    const said =
      bytes === undefined ? (times > 0 ? text.replace("@", () => plus.repeat(times)) : text) : fromHex(bytes);
    if (!accepted) expect(() => reader(said)).toThrow(Malformed);
    else if (means === undefined) reader(said);
    else expect(reader(said)).toEqual(means);
  });
});

interface SignatureCase extends Named {
  readonly purpose: Purpose;
  readonly document: string;
  readonly key: string;
  readonly signature: string;
  readonly digest: string;
  readonly valid: boolean;
}
const signatures = vectors<{
  readonly small_order: { readonly keys: readonly (readonly [string, boolean, boolean])[] };
  readonly cases: readonly SignatureCase[];
}>("signatures");

describe.skipIf(signatures === null)("signatures", () => {
  test.each(signatures?.cases ?? [])("$name", async ({ purpose, document, key, signature, digest: sum, valid }) => {
    expect(await digest(document)).toBe(sum);
    let found = false;
    const readable = await holds(async () => (found = await isSigned(purpose, document, signature, key)));
    expect(readable && found).toBe(valid);
  });
  test.each(signatures?.small_order.keys ?? [])(
    "%s of small order: signing %s, agreeing %s",
    (key, signing, agreeing) => {
      expect(isSmallSigningKey(fromHex(key))).toBe(signing);
      expect(isSmallAgreementKey(fromHex(key))).toBe(agreeing);
    },
  );
});

interface LogCase extends Named {
  readonly kept: readonly string[];
  readonly shown: documents.ShownLog;
  readonly line: string;
  readonly accepted: boolean;
  readonly keeps: readonly string[];
  readonly disbelieves: boolean;
}
interface Tree extends Named {
  readonly entries: readonly string[];
  readonly root: string;
}
const logs = vectors<{ readonly key: string; readonly trees: readonly Tree[]; readonly cases: readonly LogCase[] }>(
  "log",
);

function keptOf(entries: readonly string[]): KeptLog | null {
  return entries.length === 0 ? null : { head: { document: "", signature: "" }, entries };
}

describe.skipIf(logs === null)("the log", () => {
  test.each(logs?.trees ?? [])("$name", async ({ entries, root }) => {
    expect(toHex(await rootOf(await Promise.all(entries.map(leafOf))))).toBe(root);
  });
  test.each(logs?.cases ?? [])("$name", async ({ kept, shown, line, accepted, keeps, disbelieves }) => {
    let [keeping, two] = [keptOf(kept), false];
    const taken = await holds(async () => {
      await checkLog(documents.readShownLog(JSON.stringify(shown)), logs?.key ?? "");
      if (!shown.entries.includes(line)) throw new Refused("it is not there");
      try {
        keeping = longerOf(keeping, shown);
      } catch (thrown) {
        two = thrown instanceof TwoLogs;
        throw thrown;
      }
    });
    expect({ taken, keeps: keeping?.entries ?? [], two }).toEqual({ taken: accepted, keeps, two: disbelieves });
  });
});

interface RotationCase extends Named {
  readonly pinned: string;
  readonly before: readonly string[];
  readonly kept: readonly string[];
  readonly rotation: documents.SignedKeyRotation;
  readonly shown: documents.ShownLog;
  readonly accepted: boolean;
  readonly pins: string;
}
const rotations = vectors<{ readonly cases: readonly RotationCase[] }>("rotation");

describe.skipIf(rotations === null)("another key", () => {
  test.each(rotations?.cases ?? [])("$name", async ({ pinned, before, kept, rotation, shown, accepted, pins }) => {
    let key = pinned;
    const taken = await holds(async () => {
      const fresh = await handedOver(rotation, shown, pinned, before);
      longerOf(keptOf(kept), shown);
      key = fresh;
    });
    expect([taken, key]).toEqual([accepted, pins]);
  });
});

interface TokenCase extends Named {
  readonly modulus: string;
  readonly exponent: number;
  readonly message: string;
  readonly prefix: string;
  readonly salt: string;
  readonly blind: string;
  readonly prepared: string;
  readonly sent: string;
  readonly inverse: string;
  readonly blind_signature: string;
  readonly signature: string;
  readonly token: string;
}
const tokens = vectors<{
  readonly epoch: number;
  readonly operator: string;
  readonly cases: readonly TokenCase[];
  readonly finished: readonly (Named & {
    readonly of: string;
    readonly blind_signature: string;
    readonly accepted: boolean;
  })[];
  readonly keys: readonly (Named & {
    readonly modulus: string;
    readonly exponent: number;
    readonly accepted: boolean;
  })[];
  readonly logged: readonly (Named & {
    readonly key: documents.Signed;
    readonly shown: documents.ShownLog;
    readonly accepted: boolean;
  })[];
}>("tokens");

function keyOf(modulus: string, exponent: number): documents.TokenKey {
  return { epoch: tokens?.epoch ?? 0, opens: 0, ends: 1, batch: 1, modulus, exponent };
}

describe.skipIf(tokens === null)("tokens", () => {
  const kept = (each: TokenCase) => ({ prefix: each.prefix, sent: each.sent, inverse: each.inverse });
  test.each(tokens?.cases ?? [])("$name", async (each) => {
    const key = keyOf(each.modulus, each.exponent);
    const drawn = { prefix: fromHex(each.prefix), salt: fromHex(each.salt), blind: BigInt("0x" + each.blind) };
    const modulus = BigInt("0x" + each.modulus);
    expect(await blindedBy(fromHex(each.message), modulus, BigInt(each.exponent), drawn)).toEqual(kept(each));
    expect(await isSignature(fromHex(each.prepared), each.signature, key)).toBe(true);
    if (each.token !== undefined) expect(await finalized(kept(each), each.blind_signature, key)).toBe(each.token);
  });
  test.each(tokens?.finished ?? [])("$name", async ({ of, blind_signature, accepted }) => {
    const each = tokens?.cases.find(({ name }) => name === of) as TokenCase;
    const key = keyOf(each.modulus, each.exponent);
    expect(await holds(() => finalized(kept(each), blind_signature, key))).toBe(accepted);
  });
  test.each(tokens?.keys ?? [])("$name", async ({ modulus, exponent, accepted }) => {
    expect(await holds(() => blinded(new Uint8Array(19), keyOf(modulus, exponent)))).toBe(accepted);
  });
  test.each(tokens?.logged ?? [])("$name", async ({ key, shown, accepted }) => {
    const taken = await holds(async () => {
      const signed = await isSigned("token-key", key.document, key.signature, tokens?.operator ?? "");
      if (!signed) throw new Refused("not the operator's");
      await checkLog(shown, tokens?.operator ?? "");
      checkTokenKey(documents.readTokenKey(key.document), await digest(key.document), shown);
    });
    expect(taken).toBe(accepted);
  });
});
