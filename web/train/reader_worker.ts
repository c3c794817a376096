/** Next words in a thread of their own: what comes after a sentence's beginning, by the shipped model or the last round's. */

import { saidBy } from "../core/errors.ts";
import { lexiconOf, shownFor, type Lexicon } from "../page/decoder.ts";
import { nextWordsOf, prepareRuntime, type NextWords, type State } from "./graphs.ts";
import type { FromReader, ToReader, Which } from "./messages.ts";

/** A model, and what it has read so far: the next key goes on from there, or from a word before it. */
interface Reading {
  readonly model: NextWords;
  ids: readonly number[];
  states: readonly State[]; // before each id, and after the last
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
  return { model, ids: [], states: [model.begin()], logs: new Float32Array(model.size) };
}

/** The log probabilities (V,) of what comes after these ids. */
async function read(reading: Reading, ids: readonly number[]): Promise<Float32Array> {
  const apart = ids.findIndex((id, at) => reading.ids[at] !== id);
  const same = apart < 0 ? ids.length : apart;
  if (same === ids.length && same === reading.ids.length) return reading.logs;
  // Only the last ids' probabilities are kept: of an earlier place its last id is read again.
  const states = reading.states.slice(0, Math.max(1, Math.min(same + 1, ids.length)));
  let logs = reading.logs;
  for (const id of ids.slice(states.length - 1)) {
    const found = await reading.model.step(states.at(-1) as State, id);
    states.push(found.state);
    logs = found.logs;
  }
  Object.assign(reading, { ids, states, logs });
  return logs;
}

function says(answer: FromReader): void {
  port.postMessage(answer);
}
