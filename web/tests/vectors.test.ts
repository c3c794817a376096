/** The vectors that both programs read (tests/vectors), made by the Python side. */

import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

import { fromHex, toHex } from "../core/bytes.ts";
import * as documents from "../core/documents.ts";
import { epsilonOf } from "../core/epsilon.ts";
import { Malformed, Refused } from "../core/errors.ts";
import { handedOver } from "../core/keyrotation.ts";
import { admitted, readBundle } from "../core/bundle.ts";
import { checkLog, leafOf, longerOf, rootOf, TwoLogs, type KeptLog } from "../core/log.ts";
import { DEFAULT_POLICY, refuseCost } from "../core/policy.ts";
import { costOf, encodingFactor, readMatrix, refuseMatrix } from "../core/price.ts";
import { reportBody, reportBytes } from "../core/report.ts";
import { readTensor } from "../core/safetensors.ts";
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
interface BundleCase extends Named {
  readonly files: Readonly<Record<string, string>>;
  readonly digest: string;
  readonly have: string | null;
  readonly kept: readonly string[];
  readonly shown: documents.ShownLog;
  readonly accepted: boolean;
}
const logs = vectors<{
  readonly key: string;
  readonly trees: readonly Tree[];
  readonly cases: readonly LogCase[];
  readonly bundles: readonly BundleCase[];
}>("log");

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
  test.each(logs?.bundles ?? [])("$name", async ({ files, digest: said, have, kept, shown, accepted }) => {
    const { digest } = await readBundle(JSON.stringify({ files, digest: said, publisher: null }));
    const taken = await holds(() => admitted(digest, have, keptOf(kept), JSON.stringify(shown), logs?.key ?? ""));
    expect(taken).toBe(accepted);
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
    expect((await finalized(kept(each), blind_signature, key)) !== null).toBe(accepted);
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

interface PriceCase extends Named {
  readonly plan: string;
  readonly matrix?: string;
  readonly accepted: boolean;
  readonly costs?: {
    readonly zcdp: number | null;
    readonly epsilon: number | null;
    readonly delta: number | null;
    readonly local_epsilon: number | null;
  };
  readonly spent?: readonly (readonly [readonly number[], number])[];
}
const prices = vectors<{
  readonly tolerance: number;
  readonly epsilons: readonly (Named & { readonly zcdp: number; readonly delta: number; readonly epsilon: number })[];
  readonly cases: readonly PriceCase[];
}>("prices");

describe.skipIf(prices === null)("prices", () => {
  const near = (found: number, wanted: number): void =>
    expect(Math.abs(found - wanted)).toBeLessThanOrEqual((prices?.tolerance ?? 0) * Math.abs(wanted));
  test.each(prices?.epsilons ?? [])("$name", ({ zcdp, delta, epsilon }) => near(epsilonOf(zcdp, delta), epsilon));
  test.each(prices?.cases ?? [])("$name", ({ plan, matrix, accepted, costs, spent }) => {
    const read = documents.readPlan(plan);
    const price = () => {
      refuseMatrix(read);
      const cost = costOf(read, matrix === undefined ? null : fromHex(matrix));
      refuseCost(cost, {
        ...DEFAULT_POLICY,
        largest_zcdp: 1e300,
        largest_epsilon: 1e300,
        largest_local_epsilon: 1e300,
      });
      return cost;
    };
    if (!accepted) {
      expect(price).toThrow(Refused);
      return;
    }
    const cost = price();
    const { zcdp, epsilon, delta, localEpsilon } = cost;
    expect({ zcdp, epsilon, delta, local_epsilon: localEpsilon }).toEqual(costs);
    for (const [rounds, zcdp] of spent ?? []) near(cost.spent(rounds), zcdp);
  });
});

interface ReportCase extends Named {
  readonly asks: { readonly kind: string; readonly encoded?: unknown };
  readonly report: {
    readonly values: readonly number[];
    readonly usable: boolean;
    readonly short: boolean | null;
    readonly bounded_loss: number | null;
  };
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}
const reports = vectors<{
  readonly assignment: string;
  readonly cases: readonly ReportCase[];
  readonly files: readonly (Named & {
    readonly body: string;
    readonly tensor: "model" | "matrix";
    readonly values: readonly number[] | null;
  })[];
}>("reports");

interface Header {
  readonly __metadata__: Readonly<Record<string, string>>;
}

describe.skipIf(reports === null)("reports", () => {
  const headerOf = (body: Uint8Array): Header => JSON.parse(new TextDecoder().decode(body.subarray(8, 520))) as Header;
  // A device says of no report that it is not usable.
  test.each(reports?.cases.filter(({ report }) => report.usable) ?? [])("$name", ({ asks, report, body }) => {
    const update = asks.kind === "train" && (asks.encoded ?? null) === null;
    const values = update ? Float32Array.from(report.values) : Uint32Array.from(report.values);
    const beside = {
      ...(report.short === null ? {} : { short: String(report.short) }),
      ...(report.bounded_loss === null ? {} : { bounded_loss: String(report.bounded_loss) }),
    };
    const [ours, theirs] = [reportBody({ values, beside }, reports?.assignment ?? ""), fromHex(body)];
    expect(ours.length).toBe(theirs.length);
    expect(ours.length).toBe(reportBytes(values.length));
    expect(ours.subarray(0, 8)).toEqual(theirs.subarray(0, 8));
    expect(ours.subarray(520)).toEqual(theirs.subarray(520));
    const [said, wanted] = [headerOf(ours), headerOf(theirs)];
    const loss = (header: Header) => Number(header.__metadata__["bounded_loss"]);
    expect(loss(said)).toEqual(loss(wanted));
    const without = (header: Header) => ({ ...header, __metadata__: { ...header.__metadata__, bounded_loss: "" } });
    expect(without(said)).toEqual(without(wanted));
  });
  test.each(reports?.files ?? [])("$name", ({ body, tensor, values }) => {
    const file = fromHex(body);
    const path = { sha256: "", bytes: file.length, path: "" };
    const read = (): readonly number[] => {
      if (tensor === "matrix") return [...readMatrix(file, { kind: "banded", rounds: 2, bands: 2, ...path }).numbers];
      const numbers = readTensor(file, "model", "F32", 3);
      if (!numbers.every(Number.isFinite)) throw new Refused("a number that is none");
      return [...numbers];
    };
    if (values === null) expect(read).toThrow(Refused);
    else expect(read()).toEqual(values);
  });
});

interface Choice extends Named {
  readonly clip_norm: number;
  readonly dimension: number;
  readonly scale: number;
  readonly inflation: number;
}
const encodings = vectors<{ readonly choices: readonly Choice[] }>("encodings");

describe.skipIf(encodings === null)("encodings", () => {
  test.each(encodings?.choices ?? [])("$name", ({ dimension, clip_norm, scale, inflation }) => {
    expect(Math.abs(encodingFactor(dimension, clip_norm, scale) / inflation - 1)).toBeLessThan(1e-9);
  });
});
