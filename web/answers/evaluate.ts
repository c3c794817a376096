/** Tasks to evaluate: how many next words each model predicts in text that no training read, in cells of histograms. */

import type { Evaluate, Plan, RoundTask } from "../core/documents.ts";
import { Refused } from "../core/errors.ts";
import { Section } from "../core/recipe.ts";
import { readTensor } from "../core/safetensors.ts";
import { withParameters } from "../train/exported.ts";
import { SPECIALS } from "../train/ids.ts";
import { nextWordsOf, type NextWords } from "../train/next_words.ts";
import { cellOf, counted, noReport, refuseOthers, type Histogram } from "./histograms.ts";
import type { Known, Network, Question } from "./question.ts";
import { judging, marked, type Sentence } from "./typed_text.ts";

const MOST_WORDS = 1_000; // of a sentence that judges
const UNCHANGED = 1e-9; // below every change that is none
const steps = (first: number, last: number): readonly number[] => Array.from({ length: last - first + 1 }, (_, at) => (first + at) / 100);
const ACCURACY: Histogram = { slices: [], bins: steps(0, 60) };
const CHANGE: Histogram = { slices: [], bins: [...steps(-20, 0), UNCHANGED, ...steps(1, 20)] }; // who is unchanged is apart

/** Throws: Refused for networks that are not this device's, and where the owner keeps no text to judge models by. */
export function evaluateQuestion(plan: Plan, task: RoundTask, { network, split }: Known): Question {
  const { asks } = task;
  if (asks.kind !== "evaluate") throw new Refused(`the task is to ${asks.kind}, and not to evaluate.`);
  if (split === null) throw new Refused("training may read all text of this device, so none of it judges models; keep some for that (split in the policy).");
  if (network === null) throw new Refused("this page's export has no step of training, so it judges no other model.");
  const recipe = Section.of(plan.recipe);
  const models = recipe.sections("models") ?? [];
  if (models.length !== asks.parameters.length) throw new Refused(`the task has ${asks.parameters.length} models, and its plan ${models.length}.`);
  models.forEach((each, place) => refuseNetwork(each.required("network"), asks.parameters[place] as number, network));
  const settings = recipe.required("settings");
  settings.refuseOthers(["split_name", "clients", "sentences", "words"]);
  const [sentences, words] = [settings.whole("sentences") ?? 64, settings.whole("words") ?? 20];
  if (sentences < 1 || words < 1 || words > MOST_WORDS) throw new Refused(`the plan reads ${sentences} sentences of ${words} words.`);
  refuseOthers(asks, [...models.map(() => ACCURACY), ...models.slice(1).map(() => CHANGE)]);
  return {
    check: async (content) => void modelsIn(content, asks),
    nothing: (draws) => counted(asks, noReport(asks), draws),
    answer: async (own, content, draws) => {
      const text = spread(judging(own), sentences).map((each) => marked(each).slice(0, words + 1));
      const accuracies = modelsIn(content, asks).map((model) => accuracyOf(nextWordsOf(withParameters(network.step, network.train, model)), text));
      const [first] = accuracies as [number];
      const cells = [...accuracies.map((each) => cellOf(ACCURACY, 0, each)), ...accuracies.slice(1).map((each) => cellOf(CHANGE, 0, each - first))];
      return counted(asks, cells, draws);
    },
  };
}

/** At most so many sentences, evenly spread over the text. */
export function spread(text: readonly Sentence[], most: number): readonly Sentence[] {
  const count = Math.min(most, text.length);
  if (count < 2) return text.slice(0, count);
  const apart = (text.length - 1) / (count - 1);
  const places = Array.from({ length: count }, (_, at) => (at === count - 1 ? text.length - 1 : Math.trunc(at * apart)));
  return [...new Set(places)].map((place) => text[place] as Sentence);
}

/** The share of known words that a model's first suggestion is; NaN without one. text: sentences that begin with BOS. */
export function accuracyOf(model: NextWords, text: readonly (readonly number[])[]): number {
  let [known, right] = [0, 0];
  for (const ids of text) {
    let state = model.begin();
    for (const [place, id] of ids.slice(0, -1).entries()) {
      const next = model.step(state, id);
      state = next.state;
      const target = ids[place + 1] as number;
      if (target < SPECIALS) continue; // nobody is shown an end, or an unknown word
      known++;
      if (firstOf(next.logs) === target) right++;
    }
  }
  return known === 0 ? NaN : right / known;
}

/** The likeliest word, the smallest id of several. */
function firstOf(logs: Float32Array): number {
  let best = SPECIALS;
  for (let id = SPECIALS + 1; id < logs.length; id++) if ((logs[id] as number) > (logs[best] as number)) best = id;
  return best;
}

/** The numbers of each model. */
function modelsIn(content: Uint8Array, { parameters }: Evaluate): readonly Float32Array[] {
  const all = readTensor(content, "model", "F32", parameters.reduce((sum, each) => sum + each, 0));
  if (!all.every(Number.isFinite)) throw new Refused("a model of the round has a number that is none.");
  let at = 0;
  return parameters.map((count) => all.subarray(at, (at += count)));
}

function refuseNetwork(said: Section, parameters: number, { settings, parameters: own }: Network): void {
  const [asked, here] = [said.plain(), settings];
  const keys = new Set([...Object.keys(asked), ...Object.keys(here)]);
  keys.delete("vocabulary"); // it is this device's, which the plan's digest of words says
  const other = [...keys].find((key) => JSON.stringify(asked[key]) !== JSON.stringify(here[key]));
  if (other !== undefined) throw new Refused(`a model's network has another '${other}' than the one that this page has the code of.`);
  if (parameters !== own) throw new Refused(`a model has ${parameters} numbers, and this page's network ${own}.`);
}
