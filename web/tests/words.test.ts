import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { BREAKS, EMOJI, PAIRS } from "../train/unicode_tables.ts";
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
  const written = (table: string, meant: (letter: string) => string): string =>
    [...table.matchAll(/([A-Za-z])(\d*)/g)].map(([, letter = "", length]) => meant(letter).repeat(Number(length || 1))).join("");
  const pairs = new Map(PAIRS.split(" ").map((each) => [each.charAt(0), each]));
  for (const [place, name] of ["WORD_BREAK", "SENTENCE_BREAK"].entries()) {
    const python = written(of(name), (letter) => letter);
    const ours = written(BREAKS, (letter) => pairs.get(letter)?.[1 + place] ?? "");
    expect(ours.length).toBe(0x110000);
    expect(ours === python).toBe(true);
  }
  expect(EMOJI).toBe(of("EMOJI"));
});

test("a million marks take no long", () => {
  const start = performance.now();
  pieces(".".repeat(300_000) + "a'".repeat(300_000) + "\u200d".repeat(300_000), AS_TYPED);
  expect(performance.now() - start).toBeLessThan(5000);
});
