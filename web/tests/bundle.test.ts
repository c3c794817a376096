/** `bundle.json`: one that is not whole, or names what is no file of a page, is none. */

import { expect, test } from "vitest";

import { digestOf, readBundle, writtenBundle, type Bundle } from "../core/bundle.ts";
import { Malformed } from "../core/errors.ts";

const FILES = new Map([
  ["page.js", "1".repeat(64)],
  ["model/step.onnx", "2".repeat(64)],
]);

async function bundle(files = FILES, publisher: string | null = null): Promise<Bundle> {
  return { digest: await digestOf(files), files, publisher };
}

test("what was written is read", async () => {
  for (const each of [await bundle(), await bundle(FILES, "3".repeat(64))]) expect(await readBundle(writtenBundle(each))).toEqual(each);
});

test.each(["../page.js", "/page.js", "a//b", "a/", "", ".env", "a b", "https://example.org/a.js", "a\\b", "a?b", "%2e"])("'%s' is no name of a file", async (name) => {
  await expect(readBundle(writtenBundle(await bundle(new Map([[name, "1".repeat(64)]]))))).rejects.toThrow(Malformed);
});

test.each(["__proto__", "constructor"])("a file may be called %s, and its digest counts", async (name) => {
  const files = new Map([...FILES, [name, "4".repeat(64)] as const]);
  const text = `{"digest":"${await digestOf(files)}","publisher":null,"files":{${[...files].map(([key, value]) => `"${key}":"${value}"`).join()}}}`;
  expect((await readBundle(text)).files.get(name)).toBe("4".repeat(64));
  await expect(readBundle(text.replace("4".repeat(64), "5".repeat(64)))).rejects.toThrow("digest is not that of its files");
});

test.each([
  ["no JSON", "<!doctype html>"],
  ["a list", "[]"],
  ["without files", `{"digest":"${"1".repeat(64)}","publisher":null}`],
  ["of no files", `{"digest":"${"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}","files":{},"publisher":null}`],
  ["with a key twice", `{"digest":"${"1".repeat(64)}","digest":"${"1".repeat(64)}","files":{"a":"${"1".repeat(64)}"},"publisher":null}`],
  ["of another digest", `{"digest":"${"1".repeat(64)}","files":{"a":"${"1".repeat(64)}"},"publisher":null}`],
])("%s: refused", async (_, text) => {
  await expect(readBundle(text)).rejects.toThrow(Malformed);
});
