/** Trains in a thread of its own, so that keys answer meanwhile. It has no network of its own, and ends with its update. */

import { saidBy } from "../core/errors.ts";
import { prepareRuntime, stepperOf } from "./graphs.ts";
import type { FromTrainer, ToTrainer } from "./messages.ts";
import { batchesOf, drawnOrder, localUpdate } from "./trainer.ts";

const port = self as unknown as DedicatedWorkerGlobalScope;

port.onmessage = async ({ data }: MessageEvent<ToTrainer>): Promise<void> => {
  let answer: FromTrainer;
  try {
    prepareRuntime(data.runtime);
    const stepper = await stepperOf(data.train);
    const batches = batchesOf(data.sentences, drawnOrder(data.sentences.length), data.client);
    const { update, loss } = await localUpdate(stepper, data.model, batches, data.client);
    answer = { kind: "trained", update: new Float32Array(update), loss };
  } catch (thrown) {
    answer = { kind: "failed", why: saidBy(thrown) };
  }
  port.postMessage(answer, answer.kind === "trained" ? [answer.update.buffer] : []);
};
