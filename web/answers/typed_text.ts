/** What was typed, cut as the vocabulary has it: the device's own text, which tasks ask about. */

import { parted, type Split } from "../core/split.ts";
import { BOS, EOS, OOV } from "../train/ids.ts";
import type { Vocabulary } from "../train/vocabulary.ts";
import { sentencesOf } from "../train/words.ts";

/** A message that its owner kept. */
export interface Message {
  readonly at: number; // Unix seconds
  readonly text: string;
}

/** A device's text. */
export interface OwnText {
  readonly messages: readonly Message[];
  readonly vocabulary: Vocabulary;
  /** What is kept to judge models; null: training may read all of it. */
  readonly split: Split | null;
}

/** Sentences of it: the words as they are spelled, and their ids, in which OOV is a word that the vocabulary lacks. */
export interface Sentence {
  readonly at: number;
  readonly words: readonly string[];
  readonly ids: readonly number[];
}

/** All of it, in the order in which it was kept. */
export function sentencesIn({ messages, vocabulary }: OwnText): readonly Sentence[] {
  return messages.flatMap(({ at, text }) =>
    sentencesOf(text, vocabulary.writing).map((words) => ({ at, words, ids: words.map((each) => vocabulary.ids.get(each) ?? OOV) })),
  );
}

/** What training may read. */
export function trainable(own: OwnText): readonly Sentence[] {
  const all = sentencesIn(own);
  if (own.split === null) return all;
  return (parted(own.split, all.map(({ at }) => at))?.train ?? []).map((row) => all[row] as Sentence);
}

/** What models are judged on: no training reads it. */
export function judging(own: OwnText): readonly Sentence[] {
  const all = sentencesIn(own);
  if (own.split === null) return [];
  return (parted(own.split, all.map(({ at }) => at))?.test ?? []).map((row) => all[row] as Sentence);
}

/** A sentence as models read it: BOS, words, EOS. */
export function marked({ ids }: Sentence): readonly number[] {
  return [BOS, ...ids, EOS];
}

/** How often each word was typed that the vocabulary lacks, in what may be trained on. */
export function unknownWords(own: OwnText): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const { words, ids } of trainable(own)) {
    words.forEach((word, place) => {
      if (ids[place] === OOV) found.set(word, (found.get(word) ?? 0) + 1);
    });
  }
  return found;
}
