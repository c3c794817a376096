/** The kinds of tasks whose reports are counts: a kind is a line in the table here, and a module beside it. */

import type { Plan, RoundTask } from "../core/documents.ts";
import { Refused } from "../core/errors.ts";
import { random, type Draw } from "../core/seal/secrets.ts";
import { countQuestion } from "./count.ts";
import { discoverQuestion } from "./discover.ts";
import { Draws } from "./draws.ts";
import { evaluateQuestion } from "./evaluate.ts";
import type { Known, Question } from "./question.ts";
import type { OwnText } from "./typed_text.ts";

const KINDS: Readonly<Record<string, { readonly seconds: number; question(plan: Plan, task: RoundTask, known: Known): Question }>> = {
  count: { seconds: 0, question: countQuestion },
  discover: { seconds: 0, question: discoverQuestion },
  evaluate: { seconds: 240, question: evaluateQuestion },
};

/** Their names. */
export const COUNTED: readonly string[] = Object.keys(KINDS);

/** In which a slow device has answered, by the kind alone. */
export function secondsOf(kind: string): number {
  return KINDS[kind]?.seconds ?? 0;
}

/** What a task asks. Throws: Refused where plan and task contradict each other, or this device cannot know what is asked. */
export function questionOf(plan: Plan, task: RoundTask, known: Known): Question {
  const kind = Object.hasOwn(KINDS, task.asks.kind) ? KINDS[task.asks.kind] : undefined;
  if (kind === undefined) throw new Refused(`this device does no tasks to ${task.asks.kind}.`);
  return kind.question(plan, task, known);
}

/** What is answered, by a task that was checked. own: null for the report that says nothing. */
export interface Asked {
  readonly plan: Plan;
  readonly task: RoundTask;
  readonly content: Uint8Array;
  readonly known: Known;
  readonly own: OwnText | null;
}

/** The counts of a report (length,). Throws: anything. */
export async function answered({ plan, task, content, known, own }: Asked, draw: Draw = random): Promise<Uint32Array> {
  const question = questionOf(plan, task, known);
  const draws = new Draws(draw);
  return own === null ? question.nothing(draws) : question.answer(own, content, draws);
}
