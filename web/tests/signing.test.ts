import { ed25519, x25519 } from "@noble/curves/ed25519.js";
import { expect, test } from "vitest";

import { fromHex, joined, sha256, toHex, utf8 } from "../core/bytes.ts";
import { Refused } from "../core/errors.ts";
import { handedOver } from "../core/keyrotation.ts";
import { checkLog, handOverLine, leafOf, longerOf, planLine, rootOf, tokenKeyLine, TwoLogs } from "../core/log.ts";
import { digest, isSigned, isSmallAgreementKey, isSmallSigningKey } from "../core/signing.ts";
import { blinded, checkTokenKey, finalized, isSignature, tokenMessage } from "../core/tokens.ts";
import { newOperator, newSigner } from "./operator.ts";

test("the page's receipt", async () => {
  const text = `{"assignment": "${"01".repeat(16)}", "sha256": "${"ab".repeat(32)}", "received": true}`;
  const key = "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29";
  const signature =
    "9eb76824d922594eb07873ec69a8da9e6337e3e6f582d33472d72b5eb51c2c36" +
    "d4b9a88d8090f10efd773d6d932a706653aba3fb54c8e5b3c8455174a0cb810c";
  expect(await isSigned("receipt", text, signature, key)).toBe(true);
  expect(await isSigned("task", text, signature, key)).toBe(false);
  expect(await isSigned("receipt", text + " ", signature, key)).toBe(false);
  expect(await isSigned("receipt", text, "0".repeat(128), key)).toBe(false);
  expect(await digest(text)).toBe("f423cda64993d2c0aa28e5ce651983ff73cf3848d85adedf054876bccbf3022c");
});

const PRIME = 2n ** 255n - 19n;

function written(number: bigint): Uint8Array {
  return fromHex(number.toString(16).padStart(64, "0")).reverse();
}

test("every key of small order is refused, however it is written", async () => {
  const torsion = ed25519.Point.fromBytes(fromHex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"));
  let point = ed25519.Point.ZERO;
  const small = new Set<bigint>();
  for (let times = 0; times < 8; times++, point = point.add(torsion)) small.add(point.toAffine().y);
  expect(small.size).toBe(5);
  for (const y of small) {
    for (const same of [y, y + PRIME].filter((each) => each < 2n ** 255n)) {
      for (const sign of [0n, 1n << 255n]) {
        const key = written(same | sign);
        expect(isSmallSigningKey(key)).toBe(true);
        await expect(isSigned("plan", "{}", "0".repeat(128), toHex(key))).rejects.toThrow(Refused);
      }
    }
  }
  for (let trial = 0; trial < 20; trial++) {
    const key = ed25519.getPublicKey(ed25519.utils.randomSecretKey());
    expect(isSmallSigningKey(key)).toBe(false);
  }
});

test("a key of X25519 is small where agreeing with it gives zero", () => {
  const secret = x25519.utils.randomSecretKey();
  for (const u of [0n, 1n, PRIME - 1n, PRIME, PRIME + 1n, 9n, 10n]) {
    const key = written(u);
    let agrees = true;
    try {
      x25519.getSharedSecret(secret, key);
    } catch {
      agrees = false;
    }
    expect(isSmallAgreementKey(key)).toBe(!agrees);
  }
  for (const digits of [
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
  ]) {
    expect(isSmallAgreementKey(fromHex(digits))).toBe(true);
    expect(() => x25519.getSharedSecret(secret, fromHex(digits))).toThrow();
  }
});

/** The root as the page and RFC 9162 define it. */
async function slowRoot(leaves: readonly Uint8Array<ArrayBuffer>[]): Promise<Uint8Array<ArrayBuffer>> {
  const only = leaves[0] as Uint8Array<ArrayBuffer>;
  if (leaves.length === 1) return only;
  let half = 1;
  while (2 * half < leaves.length) half *= 2;
  return sha256(joined(Uint8Array.of(1), await slowRoot(leaves.slice(0, half)), await slowRoot(leaves.slice(half))));
}

test("the root is the RFC's, at every size", async () => {
  const lines = Array.from({ length: 40 }, (_, number) => planLine(number.toString(16).padStart(64, "0")));
  const leaves = await Promise.all(lines.map(leafOf));
  for (let size = 1; size <= 40; size++) {
    expect(await rootOf(leaves.slice(0, size))).toEqual(await slowRoot(leaves.slice(0, size)));
  }
  expect(toHex(await rootOf(leaves.slice(0, 5)))).toBe(
    "683fd2adf7861fa9a96d39eb30d85ddbe9fc36eb55ffd621fe9709350d44f1fd",
  );
});

test("a log is believed where head, size and root hold", async () => {
  const [operator, other] = [await newOperator(), await newOperator()];
  const lines = ["aa", "bb", "cc"].map((two) => planLine(two.repeat(32)));
  const shown = await operator.log(lines);
  await checkLog(shown, operator.key);
  await expect(checkLog(shown, other.key)).rejects.toThrow("did not sign");
  await expect(checkLog({ ...shown, entries: lines.slice(1) }, operator.key)).rejects.toThrow("2 entries");
  await expect(checkLog({ ...shown, entries: lines.toReversed() }, operator.key)).rejects.toThrow("root");
  const shorter = await operator.log(lines.slice(0, 2));
  expect(longerOf(null, shown)).toBe(shown);
  expect(longerOf(shorter, shown)).toBe(shown);
  expect(longerOf(shown, shorter)).toBe(shown); // which changes nothing
  expect(() => longerOf(shorter, { ...shown, entries: [lines[0] as string, lines[2] as string] })).toThrow(TwoLogs);
});

test("a hand-over is followed where both keys signed it and the log shows it", async () => {
  const [old, fresh, thief] = [await newOperator(), await newOperator(), await newOperator()];
  const document = JSON.stringify({ old: old.key, new: fresh.key });
  const signed = {
    document,
    by_old: await old.sign("hand-over", document),
    by_new: await fresh.sign("hand-over", document),
  };
  const line = handOverLine(await digest(document));
  const log = await fresh.log([planLine("aa".repeat(32)), line]);
  expect(await handedOver(signed, log, old.key, [])).toBe(fresh.key);
  await expect(handedOver(signed, log, thief.key, [])).rejects.toThrow("not from the key");
  await expect(handedOver({ ...signed, by_new: signed.by_old }, log, old.key, [])).rejects.toThrow(
    "not signed by both",
  );
  await expect(handedOver({ ...signed, by_old: signed.by_new }, log, old.key, [])).rejects.toThrow(
    "not signed by both",
  );
  await expect(handedOver(signed, await fresh.log([planLine("aa".repeat(32))]), old.key, [])).rejects.toThrow(
    "does not show",
  );
  await expect(handedOver(signed, await old.log([line]), old.key, [])).rejects.toThrow("did not sign");
});

test("a token: the signer sees what is blinded, and WebCrypto verifies what comes of it", async () => {
  const { key, sign } = await newSigner(2930);
  for (let trial = 0; trial < 5; trial++) {
    const kept = await blinded(tokenMessage(2930), key);
    const token = (await finalized(kept, sign(kept.sent), key)) ?? "";
    expect(token.length).toBe(2 * 292);
    expect(token.startsWith("00000b72" + kept.prefix)).toBe(true);
    const prepared = joined(fromHex(token.slice(8, 72)), utf8("tacit token v1\0"), Uint8Array.of(0, 0, 0x0b, 0x72));
    expect(await isSignature(prepared, token.slice(72), key)).toBe(true);
    expect(token).not.toContain(kept.sent.slice(0, 64));
    expect(await finalized(kept, kept.sent, key)).toBeNull();
  }
});

test("a key of tokens is the only one of its epoch in the log", async () => {
  const { key } = await newSigner(7);
  const [operator, ours, theirs] = [await newOperator(), "aa".repeat(32), "bb".repeat(32)];
  checkTokenKey(key, ours, await operator.log([tokenKeyLine(70, theirs), tokenKeyLine(7, ours)]));
  for (const lines of [
    [tokenKeyLine(7, theirs)],
    [tokenKeyLine(7, ours), tokenKeyLine(7, theirs)],
    [tokenKeyLine(70, ours)],
  ]) {
    const log = await operator.log(lines);
    expect(() => checkTokenKey(key, ours, log)).toThrow(Refused);
  }
});
