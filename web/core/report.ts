/** The bodies of reports, and how a kind of task comes to one. */

import type { Discover, EncodedSum, Plan, RoundTask, Train } from "./documents.ts";
import { Refused } from "./errors.ts";
import { encodingFactor, inflationOf } from "./price.ts";
import { Section } from "./recipe.ts";
import { readTensor, tensorFile } from "./safetensors.ts";

/** What a report says: an update in the clear, or words; with what stands beside the tensor. */
export interface Said {
  readonly values: Float32Array | Uint32Array;
  readonly beside: Readonly<Record<string, string>>;
}

/** A task that was checked without text. Both answers have the same length. */
export interface Prepared {
  /** How long computing may need on a slow device, in seconds. */
  readonly seconds: number;
  /** What the device says of its text. Whatever it throws becomes `nothing`. */
  fromText(): Promise<Said>;
  /** The report of a device that has nothing to say: made before text is read. */
  nothing(): Promise<Said>;
}

/** A kind of task. */
export interface Handler {
  readonly kind: string;
  /** The latest version of its tasks that it can do. */
  readonly version: number;
  /** How many numbers a report has. Throws: Refused where plan and task contradict each other. */
  length(plan: Plan, task: RoundTask): number;
  /** Checks everything that can be checked without text. Throws: Refused. */
  prepare(plan: Plan, task: RoundTask, content: Uint8Array): Promise<Prepared>;
}

/** Sealed sums: the one-message protocol of a round. */
export interface Sealing {
  /** The series that the round's settings name, and a report's bytes. Throws: Refused where they break the plan. */
  check(plan: Plan, task: RoundTask): Promise<{ readonly series: string; readonly bytes: number }>;
  seal(plan: Plan, task: RoundTask, words: Uint32Array): Promise<Uint8Array<ArrayBuffer>>;
}

/** How updates become integers. */
export interface Encoding {
  /** Throws: Refused for an encoding that is not one of this length. */
  check(encoded: EncodedSum, train: Train): void;
  /** The coordinates, 1, the bit and the digits of the loss where they are asked for. (length,) */
  encode(
    update: Float32Array,
    asks: Train,
    short: boolean | null,
    boundedLoss: number | null,
  ): Promise<Uint32Array>;
}

const FRAME_BYTES = 8 + 512; // of a body in the clear, around its numbers

/** The bytes of a report that is not sealed. */
export function reportBytes(length: number): number {
  return FRAME_BYTES + 4 * length;
}

/** The body of a report in the clear, as long as any other of its task. */
export function reportBody(said: Said, assignment: string): Uint8Array<ArrayBuffer> {
  const name = said.values instanceof Float32Array ? "update" : "words";
  return tensorFile(name, said.values, { assignment, usable: "true", ...said.beside });
}

const MOST_WORDS = 10_000_000; // that a device trains on in a round, padding counted
const SMALLEST_CLIP = 1e-30;
const FACTOR_ROOM = 1e-9; // relative: a scale is chosen so that the factor is just what is allowed
const NORM_ROOM = 1e-5; // relative, that rounding to float32 may add to a clip norm

/** What a device computes of its text: the trained model less the model that came, and the mean loss. */
export interface Training {
  train(
    plan: Plan,
    task: Train,
    model: Float32Array,
  ): Promise<{ readonly update: Float32Array; readonly loss: number }>;
  /** How long that may take on a slow device, in seconds. Throws: Refused for a task that is too large for it. */
  seconds(plan: Plan, task: Train): number;
}

/** Tasks to train. `encoding` is null on a device that sends updates in the clear alone. */
export function trainHandler(training: Training, encoding: Encoding | null): Handler {
  return {
    kind: "train",
    version: 1,
    length: (plan, task) => {
      const asks = trainAsks(task);
      refuseTraining(plan, asks, encoding);
      training.seconds(plan, asks); // a task that is too large is refused before anything is fetched
      return asks.encoded?.length ?? asks.parameters;
    },
    prepare: async (plan, task, content) => {
      const asks = trainAsks(task);
      const model = readTensor(content, "model", "F32", asks.parameters);
      if (!model.every(Number.isFinite)) throw new Refused("the model of the round has a number that is none.");
      const seconds = training.seconds(plan, asks);
      return {
        seconds,
        nothing: () => trainingSaid({ update: new Float32Array(asks.parameters), short: true, boundedLoss: 0 }, asks, encoding),
        fromText: async () => {
          const { update, loss } = await training.train(plan, asks, model);
          return trainingSaid(clipped(update, loss, asks), asks, encoding);
        },
      };
    },
  };
}

function trainAsks(task: RoundTask): Train {
  if (task.asks.kind !== "train") throw new Refused(`the task is to ${task.asks.kind}, and not to train.`);
  return task.asks;
}

function refuseTraining(plan: Plan, asks: Train, encoding: Encoding | null): void {
  if (plan.privacy.kind !== "training") throw new Refused("a plan to train has privacy of another kind.");
  const recipe = Section.of(plan.recipe);
  const clipping = recipe.section("clipping") !== null;
  const loss = recipe.section("training_loss");
  if (!clipping && asks.clip_norm > plan.privacy.clip_norm) {
    throw new Refused(`the task's clip norm ${asks.clip_norm} is above its plan's, ${plan.privacy.clip_norm}.`);
  }
  if (asks.clip_norm < SMALLEST_CLIP)
    throw new Refused(`float32 does not resolve the task's clip norm, ${asks.clip_norm}.`);
  if (clipping !== (asks.clip_estimate !== null))
    throw new Refused("the task asks for a clip estimate that its plan does not have.");
  const bound = loss === null ? null : (loss.number("bound") ?? 10);
  if (asks.loss_bound !== bound)
    throw new Refused(`the task bounds losses by ${asks.loss_bound}, and its plan by ${bound}.`);
  const { epochs, batch_size, sentences, words } = asks.client;
  if (Math.ceil(sentences / batch_size) * batch_size * words * epochs > MOST_WORDS) {
    throw new Refused(`the task is to train on more than ${MOST_WORDS} words.`);
  }
  if (asks.encoded !== null) refuseEncoding(plan, asks, asks.encoded, encoding);
}

function refuseEncoding(plan: Plan, asks: Train, encoded: EncodedSum, encoding: Encoding | null): void {
  if (encoding === null) throw new Refused("this device encodes no updates.");
  if (encoded.parameters !== asks.parameters || encoded.clip_norm !== asks.clip_norm) {
    throw new Refused("the task's encoding is of other updates than its own.");
  }
  if (encoded.threshold < plan.aggregation.threshold)
    throw new Refused("the task opens sums of fewer reports than its plan.");
  const factor = encodingFactor(encoded.dimension, encoded.clip_norm, encoded.scale);
  const allowed = inflationOf(plan);
  if (factor > allowed * (1 + FACTOR_ROOM))
    throw new Refused(`the task's encoding lengthens an update by ${factor}, and its plan accounts for ${allowed}.`);
  encoding.check(encoded, asks);
}

interface Clipped {
  readonly update: Float32Array;
  readonly short: boolean;
  readonly boundedLoss: number;
}

/** An update times min(1, clip norm / its norm), measured once more. Throws: RangeError where it is not finite. */
export function clipped(update: Float32Array, loss: number, asks: Train): Clipped {
  if (update.length !== asks.parameters)
    throw new RangeError(`an update of ${update.length} numbers, and not ${asks.parameters}`);
  const norm = normOf(update);
  const bound = asks.loss_bound ?? 0;
  if (!Number.isFinite(norm) || !Number.isFinite(loss)) throw new RangeError("the update, or its loss, is not finite");
  const factor = norm > asks.clip_norm ? asks.clip_norm / norm : 1;
  const short = asks.clip_estimate === null || norm <= asks.clip_estimate;
  const within = update.map((each) => each * factor);
  if (normOf(within) > asks.clip_norm * (1 + NORM_ROOM))
    throw new RangeError("the clipped update is longer than its clip norm");
  return { update: within, short, boundedLoss: Math.min(Math.max(loss, 0), bound) - bound / 2 };
}

function normOf(update: Float32Array): number {
  let sum = 0;
  for (const each of update) sum += each * each;
  return Math.sqrt(sum);
}

async function trainingSaid(
  { update, short, boundedLoss }: Clipped,
  asks: Train,
  encoding: Encoding | null,
): Promise<Said> {
  const bit = asks.clip_estimate === null ? null : short;
  const loss = asks.loss_bound === null ? null : boundedLoss;
  if (asks.encoded !== null) {
    if (encoding === null) throw new Refused("this device encodes no updates.");
    return { values: await encoding.encode(update, asks, bit, loss), beside: {} };
  }
  return {
    values: update,
    beside: {
      ...(bit === null ? {} : { short: String(bit) }),
      ...(loss === null ? {} : { bounded_loss: String(loss) }),
    },
  };
}

/** How many counts a report of a task has, and the most that one of them may be. */
export function countsOf(asks: Exclude<RoundTask["asks"], Train>): { readonly length: number; readonly most: number } {
  if (asks.kind === "discover") return { length: domainOf(asks.question), most: asks.reports.contributions };
  const cells = asks.cells.reduce((sum, each) => sum + each, 0);
  if (asks.kind === "count" && asks.norms !== null) return { length: cells, most: Math.floor(Math.max(...asks.norms)) };
  return { length: cells + (asks.local_epsilon === null ? 0 : asks.cells.length), most: 1 };
}

/** How many answers a question for words has: each symbol behind each prefix, or each word and another; and nothing. */
export function domainOf(question: Discover["question"]): number {
  if (question.about === "words") return question.words.length + 2;
  return question.prefixes.length * (Array.from(question.alphabet).length + 1) + 1;
}

/** How a device answers questions whose reports are counts. */
export interface Counting {
  /** How many counts an answer has, and the most that one may be. Throws: Refused for an unknown question. */
  sizes(plan: Plan, task: RoundTask): { readonly length: number; readonly most: number };
  /** Checks the content without text. Throws: Refused. */
  check(plan: Plan, task: RoundTask, content: Uint8Array): Promise<void>;
  answer(plan: Plan, task: RoundTask, content: Uint8Array): Promise<Uint32Array>;
  /** Randomised where the task says so, as an answer is. */
  nothing(plan: Plan, task: RoundTask): Promise<Uint32Array>;
  readonly seconds: number;
}

/** Tasks whose reports are counts: to discover, to evaluate, to personalize, to count. */
export function countHandler(kind: string, counting: Counting): Handler {
  const checked = (words: Uint32Array, plan: Plan, task: RoundTask): Said => {
    const { length, most } = counting.sizes(plan, task);
    if (words.length !== length) throw new RangeError(`${words.length} counts, and not ${length}`);
    if (words.some((each) => each > most)) throw new RangeError(`a count above ${most}`);
    return { values: words, beside: {} };
  };
  return {
    kind,
    version: 1,
    length: (plan, task) => {
      refuseCounting(plan, task);
      return counting.sizes(plan, task).length;
    },
    prepare: async (plan, task, content) => {
      await counting.check(plan, task, content);
      // Made of every task, and first: were it made where text is unfit, what the device does would tell of the text.
      const nothing = checked(await counting.nothing(plan, task), plan, task);
      return {
        seconds: counting.seconds,
        nothing: async () => nothing,
        fromText: async () => checked(await counting.answer(plan, task, content), plan, task),
      };
    },
  };
}

/**
 * The counts of a device that has nothing to say, where they are not randomised: "no report", the last cell of each
 * histogram; zeros for sums.
 *
 * Throws: Refused where the task has its reports randomised.
 */
export function plainNothing({ asks }: RoundTask): Uint32Array {
  if (asks.kind === "train" || asks.kind === "discover" || asks.local_epsilon !== null) {
    throw new Refused("this device randomises no reports.");
  }
  const words = new Uint32Array(asks.cells.reduce((sum, each) => sum + each, 0));
  if (asks.kind === "count" && asks.norms !== null) return words;
  let end = 0;
  for (const cells of asks.cells) {
    end += cells;
    words[end - 1] = 1;
  }
  return words;
}

/** What a question whose reports are counts has to keep to of its plan. Throws: Refused. */
export function refuseCounting({ privacy, recipe }: Plan, { asks, round }: RoundTask): void {
  const contradiction = (what: string): Refused => new Refused(`the task contradicts its plan: ${what}.`);
  if (asks.kind === "train") throw contradiction("it is to train");
  if (asks.kind === "discover") {
    const reports = Section.of(recipe).required("reports");
    reports.refuseOthers(["local_epsilon", "contributions", "sampler", "randomizer"]);
    const { contributions, local_epsilon } = asks.reports;
    if (privacy.kind !== "local") throw contradiction("a plan to discover has reports that devices randomise");
    if ((reports.whole("contributions") ?? 1) !== contributions) throw contradiction("reports.contributions");
    if ((reports.number("local_epsilon") ?? local_epsilon) !== local_epsilon)
      throw contradiction("reports.local_epsilon");
    const sampler = asks.question.about === "words" ? "random" : (reports.text("sampler") ?? "random");
    if (asks.reports.sampler !== sampler) throw contradiction("reports.sampler");
    if ((reports.text("randomizer") ?? "subset-selection") !== asks.reports.randomizer) {
      throw contradiction("reports.randomizer");
    }
    const epsilon = contributions * local_epsilon;
    if (epsilon > privacy.local_epsilon * (1 + 1e-9))
      throw new Refused(`the plan claims epsilon ${privacy.local_epsilon}, and costs ${epsilon}.`);
    return;
  }
  if (privacy.kind === "local") {
    if (asks.local_epsilon !== privacy.local_epsilon) throw contradiction("its reports are randomised otherwise");
    return;
  }
  if (asks.local_epsilon !== null) throw contradiction("its reports are randomised, and the plan's are not");
  if (privacy.kind === "histograms") {
    if (privacy.histograms[round] !== asks.cells.length) throw contradiction(`it has ${asks.cells.length} histograms`);
    if (asks.kind === "count" && asks.norms !== null) throw contradiction("it asks for sums");
  } else if (privacy.kind === "sums") {
    const norms = asks.kind === "count" ? asks.norms : null;
    if (norms === null || norms.length !== asks.cells.length) throw contradiction("it has no norm for each sum");
    const norm = Math.sqrt(norms.reduce((sum, each) => sum + each * each, 0));
    if (norm > privacy.clip_norm * (1 + 1e-9))
      throw contradiction(`its sums have the norm ${norm}, and the plan ${privacy.clip_norm}`);
  } else {
    throw contradiction("the plan is to train");
  }
}
