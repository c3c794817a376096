/** The words a keyboard knows (`vocabulary.json`), and the ids of what was typed. */

import { sha256, toHex, utf8 } from "../core/bytes.ts";
import { CannotWork } from "../core/errors.ts";
import { BOS, EOS, OOV, SPECIALS } from "./ids.ts";
import { canonical, lowered, RULES, sentencesOf, type Writing } from "./words.ts";

const FORMAT = "tacit-vocabulary-3";

export interface Vocabulary {
  readonly sha256: string;
  readonly words: readonly string[]; // words[i] has the id i + SPECIALS
  readonly writing: Writing;
  readonly ids: ReadonlyMap<string, number>;
}

/** Reads a vocabulary. Throws: CannotWork where it is none, of other rules, or its words are not those of its digest. */
export async function readVocabulary(text: string): Promise<Vocabulary> {
  const wrong = (what: string): CannotWork => new CannotWork(`vocabulary.json cannot be used: ${what}.`);
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    throw wrong("it is no JSON");
  }
  if (!isRecord(said) || said["format"] !== FORMAT) throw wrong(`it is not of the format ${FORMAT}`);
  const { format: _format, sha256: claimed, ...content } = said;
  if (content["rules"] !== RULES) throw wrong(`its words are cut by ${String(content["rules"])}, and this page cuts by ${RULES}`);
  const { words, lowercase, language, emoji } = content;
  if (!Array.isArray(words) || !words.every((each) => typeof each === "string")) throw wrong("it has no list of words");
  if (typeof lowercase !== "boolean" || typeof language !== "string" || typeof emoji !== "boolean") {
    throw wrong("it does not say how its words are written");
  }
  const digest = toHex(await sha256(utf8(pythonJson(content))));
  if (digest !== claimed) throw wrong("somebody changed its words, or where they come from");
  return {
    sha256: digest,
    words,
    writing: { lowercase, language, emoji },
    ids: new Map(words.map((each, place) => [each, place + SPECIALS])),
  };
}

/** The id of a word, OOV where it is unknown. */
export function idOf(vocabulary: Vocabulary, word: string): number {
  const { writing, ids } = vocabulary;
  const spelled = canonical(word, writing);
  return ids.get(writing.lowercase ? lowered(spelled, writing.language) : spelled) ?? OOV;
}

export function wordOf(vocabulary: Vocabulary, id: number): string | null {
  return vocabulary.words[id - SPECIALS] ?? null;
}

/** The sentences of a text as ids, each BOS, words, EOS. */
export function encode(vocabulary: Vocabulary, text: string): readonly (readonly number[])[] {
  return sentencesOf(text, vocabulary.writing).map((words) => [
    BOS,
    ...words.map((each) => vocabulary.ids.get(each) ?? OOV),
    EOS,
  ]);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** JSON as Python writes it, keys sorted: what the digest of a vocabulary is over. */
function pythonJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}: ${pythonJson(value[key])}`).join(", ")}}`;
}
