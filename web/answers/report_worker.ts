/** Makes one part of a report in a thread of its own, so that keys answer meanwhile; the page ends it with its answer. */

import { calculationsOf } from "../core/sealing.ts";
import { saidBy } from "../core/errors.ts";
import { productsOf } from "../train/products.ts";
import { stepperOf } from "../train/stepper.ts";
import { batchesOf, drawnOrder, localUpdate } from "../train/trainer.ts";
import { answered } from "./answered.ts";
import type { Calculated, FromReporter, ToReporter } from "./messages.ts";
import { marked, trainable } from "./typed_text.ts";

const port = self as unknown as DedicatedWorkerGlobalScope;

port.onmessage = async ({ data }: MessageEvent<ToReporter>): Promise<void> => {
  let answer: FromReporter;
  try {
    answer = { kind: "done", value: await calculated(data) };
  } catch (thrown) {
    answer = { kind: "failed", why: saidBy(thrown) };
  }
  port.postMessage(answer, answer.kind === "done" ? [bufferOf(answer.value)] : []);
};

async function calculated(asks: ToReporter): Promise<Calculated[keyof Calculated]> {
  switch (asks.kind) {
    case "train":
      return trained(asks);
    case "encode":
      return calculationsOf(asks.lattice).encode(asks.update, asks.asks, asks.short, asks.boundedLoss);
    case "seal":
      return calculationsOf(asks.lattice).seal(asks.plan, asks.task, asks.words);
    case "answer":
      return answered(asks);
  }
}

async function trained({ lattice, network, model, own, client }: Extract<ToReporter, { kind: "train" }>): Promise<Calculated["train"]> {
  const stepper = stepperOf(network.train, await productsOf(lattice));
  const sentences = trainable(own).map(marked);
  return localUpdate(stepper, model, batchesOf(sentences, drawnOrder(sentences.length), client), client);
}

/** What is handed over, and not copied. */
function bufferOf(value: Calculated[keyof Calculated]): ArrayBuffer {
  const numbers = "update" in value ? value.update : value;
  return numbers.buffer as ArrayBuffer;
}
