/**
 * From what somebody typed to sentences and words: the rules `tacit-words-2` (docs/languages.md), as Python cuts them.
 *
 * UAX #29 with tacit's exceptions. A text has to be cut here as where the vocabulary was made, or a count and an id
 * would disagree; `tests/words.test.ts` compares the two on texts full of marks, joiners and emoji.
 */

import { BREAKS, EMOJI, PAIRS } from "./unicode_tables.ts";

export const RULES = "tacit-words-2";
export const LINE_END = "\n"; // what every sentence end becomes

/** How the words of a vocabulary are written; all of it decides what a text is cut into. */
export interface Writing {
  readonly lowercase: boolean;
  /** An ISO 639 code where its rules of case or letters matter; "" for none. */
  readonly language: string;
  /** Whether an emoji is a word, or only separates words. */
  readonly emoji: boolean;
}

type Range = readonly [number, number];
type Letters = ReadonlyMap<string, readonly Range[]>;

const TITLES: ReadonlySet<string> = new Set("Mr Mrs Ms Dr Prof St Mt Lt Col Gen Rev vs".split(" "));
const LONGEST = 8; // characters looked back at: enough to tell a title or a single letter from a longer word
const LAST = 0x10ffff;
const POINTS = ".\u2024\ufe52\uff0e"; // ATerm
const MARKS = "EFZ"; // Extend, Format and ZWJ: of the character before them
const JOINERS = "\u200c\u200d";
const UNSHAPED: readonly Range[] = [[0, 0x58f], [0x1e00, 0x1fff]]; // Latin, Greek, Cyrillic: no joiner shapes them
const SIGNS: readonly Range[] = [[0xa9, 0xa9], [0xae, 0xae], [0x2122, 0x2122]]; // emoji that are written as text
const DOTLESS: ReadonlySet<string> = new Set(["tr", "az"]); // I is the capital of ı, İ of i
const DOT_STAYS: ReadonlyMap<string, string> = new Map([ // in Lithuanian
  ["\u00cc", "i\u0307\u0300"], ["\u00cd", "i\u0307\u0301"], ["\u0128", "i\u0307\u0303"],
]);
const INVISIBLE = /[\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]/gu;
const UZBEK = /(?<=[OoGg])['`\u2018]/gu; // the comma of two of its letters, however it was typed
const LINE_BREAKS = /[\r\v\f\x85\u2028\u2029]/gu;
const ASCII = /^[\0-\x7f]*$/u;

const pairs: ReadonlyMap<string, string> = new Map(PAIRS.split(" ").map((each) => [each.charAt(0), each.slice(1)]));
const word = rangesOf(BREAKS, (letter) => pairs.get(letter)?.[0] ?? "x");
const sentence = rangesOf(BREAKS, (letter) => pairs.get(letter)?.[1] ?? "x");
const picture = rangesOf(EMOJI, (letter) => letter);

/** The words of a text and, between its sentences, LINE_ENDs; no word is ever spelled in two ways. */
export function pieces(text: string, writing: Writing): readonly string[] {
  const whole = canonical(text, writing);
  const marked = whole.replace(ASCII.test(whole) ? asciiStops() : stops(), lineEnd).replace(LINE_BREAKS, LINE_END);
  const found = marked.match(writing.emoji ? cutterWithEmoji() : cutter()) ?? [];
  return writing.lowercase ? found.map((each) => lowered(each, writing.language)) : found;
}

/** The words of each sentence that has any. */
export function sentencesOf(text: string, writing: Writing): readonly (readonly string[])[] {
  const found: string[][] = [[]];
  for (const piece of pieces(text, writing)) {
    if (piece !== LINE_END) found.at(-1)?.push(piece);
    else if (found.at(-1)?.length !== 0) found.push([]);
  }
  return found.filter((each) => each.length > 0);
}

/** The canonical form of a text: what its words are made of. */
export function canonical(text: string, writing: Writing): string {
  let whole = text;
  if (!ASCII.test(whole)) {
    whole = whole.replace(INVISIBLE, "");
    whole = whole.replace(idleJoiners(), (_all: string, stays: string | undefined) => stays ?? "");
    whole = whole.normalize("NFC").replaceAll("\u2019", "'");
    if (writing.emoji) whole = qualified(whole);
  }
  return writing.language === "uz" ? whole.replace(UZBEK, "\u02bb") : whole;
}

/** A word in lower case as the language has it, composed. Elsewhere than in Turkish İ becomes i. */
export function lowered(word: string, language: string): string {
  let found = DOTLESS.has(language) ? word.replaceAll("I", "ı") : word;
  if (language === "lt") {
    found = found.replace(/[\u00cc\u00cd\u0128]/gu, (each) => DOT_STAYS.get(each) ?? each);
    found = found.replace(/([J\u012e])(?=[\u0300\u0301\u0303])/gu, "$1\u0307");
  }
  return found.replaceAll("\u0130", "i").toLowerCase().normalize("NFC");
}

/** A line break where the marks end a sentence, a blank where they do not, themselves where no blank follows. */
function lineEnd(stop: string, marks: string, start: number, text: string): string {
  const end = start + stop.length;
  const next = text.slice(end, end + 2);
  const certain = certainMarks().test(marks);
  if (!certain && next !== "" && !blank().test(next)) return stop;
  if (certain || /[!?]/u.test(marks)) return LINE_END;
  if (marks === "." || onePoint().test(marks)) {
    const before = Array.from(text.slice(Math.max(0, start - 2 * LONGEST), start)).slice(-LONGEST).join("");
    const last = wordBefore().exec(before)?.[0] ?? "";
    return TITLES.has(last) || singleLetter().test(last) ? " " : LINE_END;
  }
  const decides = decidesCase();
  decides.lastIndex = end;
  const found = decides.exec(text);
  return found !== null && lower().test(found[0]) ? " " : LINE_END;
}

/** Every emoji as UTS #51 spells it in full: U+FE0F where it would else be shown as text, and nowhere else. */
function qualified(text: string): string {
  return text.replace(shownAsText(), "$&\ufe0f").replace(keycaps(), "$1\ufe0f\u20e3").replace(shownAnyway(), "$1");
}

// -- expressions, each compiled where it is first asked for

const stops = once(() => stopsOf(""), "gu");
const asciiStops = once(() => stopsOf(`(?=${of(sentence, "SB")}|$)`), "gu");
const cutter = once(() => cutterOf([]), "gu");
const cutterWithEmoji = once(() => cutterOf([emoji()]), "gu");
const certainMarks = once(() => set(sentence.get("T") ?? [], singles("!?")), "u");
const blank = once(() => `^${of(sentence, "SBEF")}`, "u");
const lower = once(() => of(sentence, "L"), "u");
const onePoint = once(() => `^${set(singles(POINTS))}${of(sentence, "EF")}*$`, "u");
const decidesCase = once(() => of(sentence, "LUOBTA", "", "…\v\f"), "gu");
const wordBefore = once(() => `${of(word, `AHNPOK${MARKS}`)}+$`, "u");
const singleLetter = once(() => `^${of(word, "AH")}${of(word, MARKS)}*$`, "u");
const shownAsText = once(() => `${of(picture, "T")}(?![\\ufe0e\\ufe0f]|${of(picture, "M")})`, "gu");
const shownAnyway = once(() => `(${of(picture, "PM")})\\ufe0f`, "gu");
const keycaps = once(() => `(${of(picture, "K")})\\u20e3`, "gu");
const idleJoiners = once(joinersOf, "gu");

/** Marks that may end a sentence, and the closing quotes and brackets behind; a match begins with the first of several. */
function stopsOf(before: string): string {
  const mark = of(sentence, "TA", "", "…");
  const more = of(sentence, "TAEF", "", "…");
  return `(${mark}(?<!${mark}${mark})${more}*)${of(sentence, "QEF")}*${before}`;
}

/** Words, and line ends, of a text without stops. */
function cutterOf(first: readonly string[]): string {
  const one = (letters: string, but = "", more = ""): string => of(word, letters, but, more);
  const cut = (letters: string, joins: string): string => `${one(letters)}${one(letters + MARKS)}*(?:${joins})?`;
  const marks = `${one(MARKS)}*`;
  const beforeLetter = `${one("LM", POINTS)}${marks}(?=${one("AH")})`;
  const apostrophe = `'${marks}(?=${one("AHNP")})`;
  const parts = [
    cut("A", `${beforeLetter}|${apostrophe}`),
    cut("NP", `${one("CM", "", ":")}${marks}(?=${one("NP")})|${apostrophe}`),
    cut("H", `${beforeLetter}|'${marks}|"${marks}(?=${one("H")})`),
  ];
  return [
    ...first,
    LINE_END,
    "<[a-z][a-z_]*>",
    `(?:[Hh][Tt][Tt][Pp][Ss]?:\\/\\/|[Ww][Ww][Ww]\\.)${inAddress()}+`,
    `(?:${parts.join("|")})+`,
    `${one("OK")}${one(`OK${MARKS}`)}*`,
  ].join("|");
}

/** Neither a blank nor a control character nor a mark of another script that ends a sentence. */
function inAddress(): string {
  const ends = ["B", "S", "T"].flatMap((letter) => sentence.get(letter) ?? []).filter(([start]) => start > 0x7f);
  return set([[0x21, LAST]], [...ends, ...singles("<>…"), [0x7f, 0x9f]]);
}

/** An emoji sequence of UTS #51 (ED-17), of qualified text: flag, keycap, or pictures with a joiner between. */
function emoji(): string {
  const flag = of(word, "R");
  const pictures = ["P", "T"].flatMap((letter) => picture.get(letter) ?? []);
  const one = set(pictures, [...(word.get("R") ?? []), ...SIGNS]);
  const shown = `(?:${of(picture, "M")}|\\ufe0f\\u20e3?|[\\u{e0020}-\\u{e007e}]+\\u{e007f})?`;
  const whole = (name: string): string => `${one}${atomic(name, shown)}(?!\\ufe0e)`;
  return `${flag}{2}|${of(picture, "K")}\\ufe0f\\u20e3|${whole("first")}(?:\\u200d${whole("next")})*`;
}

/** Joiners that shape nothing: not between two letters or marks of a script they shape; group 1 is what stays. */
function joinersOf(): string {
  const joiners = singles(JOINERS);
  const shaped = ["A", "H", "O", "K", "E"].flatMap((letter) => word.get(letter) ?? []);
  const before = set(shaped, [...joiners, ...UNSHAPED]);
  const behind = set(shaped, joiners);
  const one = set(["P", "T", "X"].flatMap((letter) => picture.get(letter) ?? []), word.get("R"));
  const mark = set(["E", "F"].flatMap((letter) => word.get(letter) ?? []), joiners);
  const between = `(${one}${mark}*\\u200d(?=${one}))`;
  return `${between}|(?<!${before})[${JOINERS}]+|${atomic("idle", `[${JOINERS}]+`)}(?!${behind})`;
}

/** An expression that gives nothing back once it has matched, which JavaScript has no sign for. */
function atomic(name: string, expression: string): string {
  return `(?=(?<${name}>${expression}))\\k<${name}>`;
}

function once(made: () => string, flags: string): () => RegExp {
  let found: RegExp | null = null;
  return () => (found ??= new RegExp(made(), flags));
}

/** For each letter the first and last code points that have it; `meant` says which one a letter of a table stands for. */
function rangesOf(table: string, meant: (letter: string) => string): Letters {
  const found = new Map<string, [number, number][]>();
  let start = 0;
  for (const [, letter = "", length] of table.matchAll(/([A-Za-z])(\d*)/g)) {
    const end = start + Number(length || 1) - 1;
    const ranges = found.get(meant(letter)) ?? [];
    const last = ranges.at(-1);
    if (last?.[1] === start - 1) last[1] = end;
    else found.set(meant(letter), [...ranges, [start, end]]);
    start = end + 1;
  }
  return found;
}

function singles(text: string): readonly Range[] {
  return Array.from(text, (each): Range => [each.codePointAt(0) ?? 0, each.codePointAt(0) ?? 0]);
}

/** A set of the characters with one of the letters in a table. */
function of(table: Letters, letters: string, but = "", more = ""): string {
  return set([...Array.from(letters).flatMap((letter) => table.get(letter) ?? []), ...singles(more)], singles(but));
}

function set(ranges: readonly Range[], but: readonly Range[] = []): string {
  let left = ranges;
  for (const [first, end] of but) {
    left = left.flatMap(([begin, stop]): Range[] =>
      ([[begin, Math.min(stop, first - 1)], [Math.max(begin, end + 1), stop]] as Range[]).filter(([a, b]) => a <= b),
    );
  }
  return `[${left.map(([begin, stop]) => `\\u{${begin.toString(16)}}-\\u{${stop.toString(16)}}`).join("")}]`;
}
