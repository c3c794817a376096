/** Next words in a thread of their own: what comes after a sentence's beginning, by the shipped model or the last round's. */

import { saidBy } from "../core/errors.ts";
import { lexiconOf, shownFor, type Lexicon } from "../page/decoder.ts";
import { nextWordsOf, prepareRuntime, type NextWords, type State } from "./graphs.ts";
import type { FromReader, ToReader, Which } from "./messages.ts";

/** A model, and what it has read so far: the next key mostly goes on from there. */
interface Reading {
  readonly model: NextWords;
  ids: readonly number[];
  state: State;
  logs: Float32Array;
}

const port = self as unknown as DedicatedWorkerGlobalScope;
const readings = new Map<Which, Reading>();
let lexicon: Lexicon = lexiconOf([]);
let last = Promise.resolve(); // one question at a time: two would mix up what was read

port.onmessage = ({ data }: MessageEvent<ToReader>): void => {
  last = last.then(() => answered(data)).catch((thrown: unknown) => says({ kind: "failed", why: saidBy(thrown) }));
};

async function answered(asked: ToReader): Promise<void> {
  if (asked.kind === "show") {
    const start = performance.now();
    const reading = readings.get(asked.model) ?? readings.get("shipped");
    const shown = reading === undefined ? [] : shownFor(asked.typed, lexicon, await read(reading, asked.ids), asked.count);
    says({ kind: "shown", id: asked.id, shown, ms: performance.now() - start });
    return;
  }
  if (asked.kind === "open") {
    prepareRuntime(asked.runtime);
    lexicon = lexiconOf(asked.words);
    readings.set("shipped", await begun(asked.step));
  }
  const latest = asked.kind === "open" ? asked.latest : asked.step;
  if (latest !== null) readings.set("latest", await begun(latest));
  says({ kind: "ready" });
}

async function begun(step: Uint8Array<ArrayBuffer>): Promise<Reading> {
  const model = await nextWordsOf(step);
  return { model, ids: [], state: model.begin(), logs: new Float32Array(model.size) };
}

/** The log probabilities (V,) of what comes after these ids. */
async function read(reading: Reading, ids: readonly number[]): Promise<Float32Array> {
  const goesOn = ids.length >= reading.ids.length && reading.ids.every((id, at) => ids[at] === id);
  let at = goesOn ? reading.ids.length : 0;
  if (!goesOn) reading.state = reading.model.begin();
  for (; at < ids.length; at++) {
    const { state, logs } = await reading.model.step(reading.state, ids[at] as number);
    reading.state = state;
    reading.logs = logs;
  }
  reading.ids = ids;
  return reading.logs;
}

function says(answer: FromReader): void {
  port.postMessage(answer);
}
