import { expect, test } from "vitest";

import { correctionOf, lexiconOf, shownFor } from "../page/decoder.ts";
import { SPECIALS } from "../train/ids.ts";
import { seeded } from "./seeded.ts";

const WORDS = ["the", "they", "there", "three", "train", "don't", "The", "hello", "help", "I", "tomorrow"];
const lexicon = lexiconOf(WORDS);
const logs = Float32Array.from({ length: WORDS.length + SPECIALS }, (_, id) => -1 - 0.1 * id);
const wordsFor = (typed: string, count = 3): readonly string[] => shownFor(typed, lexicon, logs, count).map((each) => each.word);
const known = (word: string): boolean => WORDS.includes(word);

/** The obvious way: the distance of every word to every beginning, by its definition. */
function slowSlips(typed: string, word: string): number {
  const near = (a: string, b: string): boolean => ["qwertyuiop", "asdfghjkl", "zxcvbnm"].some((row, line, rows) => {
    const at = row.indexOf(a);
    if (at < 0) return false;
    const others = [row[at - 1], row[at + 1], ...[rows[line - 1], rows[line + 1]].flatMap((each) => [each?.[at - 1], each?.[at], each?.[at + 1]])];
    return others.includes(b);
  });
  const distance = (a: string, b: string): number => {
    if (a === "") return Array.from(b).reduce((sum, each) => sum + (each === "'" ? 0.1 : 1), 0);
    const last = a.at(-1) as string;
    const twice = last === b.at(-1) ? 0.6 : 1;
    if (b === "") return a.length;
    const other = b.at(-1) as string;
    const swapped = b.length > 1 && a.at(-1) === b.at(-2) && a.at(-2) === b.at(-1);
    return Math.min(
      swapped ? distance(a.slice(0, -2), b.slice(0, -2)) + 0.7 : Infinity,
      distance(a.slice(0, -1), b.slice(0, -1)) + (last === other ? 0 : near(last, other) ? 0.6 : 1),
      distance(a, b.slice(0, -1)) + (other === "'" ? 0.1 : 1),
      distance(a.slice(0, -1), b) + twice,
    );
  };
  return Math.min(...Array.from({ length: word.length + 1 }, (_, end) => distance(typed, word.slice(0, end).toLowerCase())));
}

test("nothing typed: the likeliest words", () => expect(wordsFor("")).toEqual(["the", "they", "there"]));
test("words go on from what was typed", () => expect(wordsFor("tr")).toEqual(["train"]));
test("a slip of a neighbouring key is mended", () => expect(wordsFor("teain")).toContain("train"));
test("an apostrophe left out is no slip worth a name", () => expect(wordsFor("dont")[0]).toBe("don't"));
test("capitals stay", () => expect(wordsFor("Hel")).toEqual(["Hello", "Help"]));

test("slips are those of the slow way", () => {
  for (const typed of ["teain", "hwllo", "thre", "tommorow", "helo", "dont", "trian", "hlep"]) {
    for (const { word, slips } of shownFor(typed, lexicon, logs, 99)) expect(slips, `${typed} ${word}`).toBeCloseTo(slowSlips(typed, word), 9);
  }
});

test("none is missed that the slow way has", () => {
  const random = seeded(3);
  const word = (): string => Array.from({ length: 1 + random.below(6) }, () => "asdew'"[random.below(6)]).join("");
  const words = [...new Set(Array.from({ length: 40 }, word))];
  const made = lexiconOf(words);
  const same = new Float32Array(words.length + SPECIALS);
  for (const typed of Array.from({ length: 15 }, word)) {
    const most = typed.length < 3 ? 0 : typed.length < 6 ? 1 : 2;
    const found = shownFor(typed, made, same, words.length).map((each) => each.word);
    expect(found.toSorted(), typed).toEqual(words.filter((each) => slowSlips(typed, each) <= most + 1e-9).toSorted());
  }
});

test("a letter may be pressed three times too often, and no more", () => {
  expect(wordsFor("tomorrowwww")).toEqual(["tomorrow"]);
  expect(wordsFor("tomorrowwwww")).toEqual([]);
});

test("only unknown words are corrected, and only by whole words", () => {
  const of = (typed: string): string | null => correctionOf(typed, shownFor(typed, lexicon, logs, 3), known);
  expect(of("tommorow")).toBe("tomorrow");
  expect(of("dont")).toBe("don't");
  expect(of("the")).toBe(null);
  expect(of("xyzzy")).toBe(null);
  expect(of("tomo")).toBe(null); // goes on to a word, and is none
});
