import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import * as tables from "../train/unicode_tables.ts";
import { pieces, sentencesOf, type Writing } from "../train/words.ts";

interface Case {
  readonly text: string;
  readonly writing: Writing;
  readonly pieces: readonly string[];
}

const cases = JSON.parse(readFileSync(new URL("fixtures/words.json", import.meta.url), "utf8")) as readonly Case[];
const AS_TYPED: Writing = { lowercase: false, language: "", emoji: false };

test("texts are cut as Python cuts them", () => {
  expect(cases.length).toBeGreaterThan(1200);
  const wrong = cases
    .map((each) => ({ ...each, found: pieces(each.text, each.writing) }))
    .filter((each) => JSON.stringify(each.found) !== JSON.stringify(each.pieces));
  expect(wrong.slice(0, 5)).toEqual([]);
});

test("sentences without a word are left out", () => {
  expect(sentencesOf("...! ok. - . ok", AS_TYPED)).toEqual([["ok"], ["ok"]]);
});

test("the tables are those of Python", () => {
  const python = readFileSync(new URL("../../src/tacit/text/unicode_tables.py", import.meta.url), "utf8");
  const of = (name: string): string =>
    [...(new RegExp(`^${name} = \\(([^)]*)\\)`, "m").exec(python)?.[1] ?? "").matchAll(/"([^"]*)"/g)].map((each) => each[1]).join("");
  for (const name of ["WORD_BREAK", "SENTENCE_BREAK", "EMOJI"] as const) expect(tables[name]).toBe(of(name));
});

test("a million marks take no long", () => {
  const start = performance.now();
  pieces(".".repeat(300_000) + "a'".repeat(300_000) + "\u200d".repeat(300_000), AS_TYPED);
  expect(performance.now() - start).toBeLessThan(5000);
});
