import { expect, test } from "vitest";

import { fromHex, joined, sha256, toHex, utf8 } from "../core/bytes.ts";

test("digits and bytes are each other's inverse", () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, place) => place);
  expect(fromHex(toHex(bytes))).toEqual(bytes);
  expect(toHex(bytes).slice(0, 8)).toBe("00010203");
});

test.each(["0", "AB", "0x", "zz", "0 "])("%j is no bytes", (digits) => {
  expect(() => fromHex(digits)).toThrow(TypeError);
});

test("SHA-256 of abc (FIPS 180-2, appendix B.1)", async () => {
  expect(toHex(await sha256(joined(utf8("a"), utf8("bc"))))).toBe(
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
});
