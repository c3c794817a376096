/** One client's update (docs/protocol.md, "A report"): sentences drawn, batches, epochs, steps of SGD. Clipping comes after. */

import type { Train } from "../core/documents.ts";
import { PAD } from "./ids.ts";

export type Client = Train["client"];

/** Steps of SGD; nothing is remembered between them. */
export interface Stepper {
  /** How many numbers the model has. */
  readonly parameters: number;
  /** One step of the model (parameters,), which it changes, on padded sentences; the mean loss before it, in nats. */
  descend(model: Float32Array<ArrayBuffer>, batch: Batch, learningRate: number): number;
}

export interface Batch {
  readonly ids: Float64Array<ArrayBuffer>; // (rows * columns,), row by row
  readonly rows: number;
  readonly columns: number;
}

/** A uniform order of 0 .. count - 1, of the system's randomness. */
export function drawnOrder(count: number): readonly number[] {
  const order = Array.from({ length: count }, (_, place) => place);
  for (let last = count - 1; last > 0; last--) {
    const other = below(last + 1);
    [order[last], order[other]] = [order[other] as number, order[last] as number];
  }
  return order;
}

/** Uniform in 0 .. end - 1. Draws again where a remainder would prefer small numbers. */
function below(end: number): number {
  const fair = 2 ** 32 - (2 ** 32 % end);
  for (;;) {
    const drawn = crypto.getRandomValues(new Uint32Array(1))[0] as number;
    if (drawn < fair) return drawn % end;
  }
}

/** The batches of an epoch: at most `sentences` of them in this order, cut to `words` words to predict, padded. */
export function batchesOf(sentences: readonly (readonly number[])[], order: readonly number[], client: Client): readonly Batch[] {
  const chosen = order.slice(0, client.sentences);
  const columns = client.words + 1;
  return Array.from({ length: Math.ceil(chosen.length / client.batch_size) }, (_, number) => {
    const ids = new Float64Array(client.batch_size * columns).fill(PAD);
    const rows = chosen.slice(number * client.batch_size, (number + 1) * client.batch_size);
    rows.forEach((place, row) => {
      (sentences[place] ?? []).slice(0, columns).forEach((id, column) => (ids[row * columns + column] = id));
    });
    return { ids, rows: client.batch_size, columns };
  });
}

/**
 * The trained model less the model that came, and the mean loss over all steps; zeros where there is no sentence.
 *
 * With `proximal` above 0 a step also takes away learning_rate * proximal times what the model has moved so far.
 */
export function localUpdate(
  stepper: Stepper,
  start: Float32Array,
  batches: readonly Batch[],
  client: Client,
): { readonly update: Float32Array<ArrayBuffer>; readonly loss: number } {
  const pull = Math.fround(client.learning_rate * client.proximal);
  const model = new Float32Array(start); // the one buffer of all steps, or each would leave another behind
  let total = 0;
  for (let epoch = 0; epoch < client.epochs; epoch++) {
    for (const batch of batches) {
      const before = pull === 0 ? null : model.slice();
      total += stepper.descend(model, batch, client.learning_rate);
      before?.forEach((each, at) => (model[at] = (model[at] as number) - pull * (each - (start[at] as number))));
    }
  }
  const steps = client.epochs * batches.length;
  start.forEach((each, at) => (model[at] = (model[at] as number) - each));
  return { update: model, loss: total / Math.max(steps, 1) };
}

/** What a round's training takes, an estimate from its sizes: tacit.networks.training_cost. */
export function costOf(client: Client, vocabulary: number, parameters: number): { readonly bytes: number; readonly operations: number } {
  const step = client.batch_size * client.words;
  const padded = Math.ceil(client.sentences / client.batch_size) * client.batch_size * (client.words + 1);
  const numbers = 3 * step * vocabulary + 4 * step * Math.floor(Math.sqrt(parameters)) + 5 * parameters + padded;
  return { bytes: 4 * numbers, operations: 6 * parameters * client.epochs * padded };
}
