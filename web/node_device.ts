/**
 * A device of `tacit serve` in Node, for trying the core out: its updates are zero or random, and of no text.
 *
 *     node node_device.js --server http://127.0.0.1:8470 --operator-key KEY --vocabulary SHA256 --state FOLDER
 */

import { createHash } from "node:crypto";
import {
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  closeSync,
  fstatSync,
  ftruncateSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { CannotWork, Refused, saidBy } from "./core/errors.ts";
import { DEFAULT_POLICY, readPolicy } from "./core/policy.ts";
import { DeviceRecord, type Store, type Stored } from "./core/record.ts";
import { countHandler, plainNothing, trainHandler, type Counting, type Training } from "./core/report.ts";
import { waitAfter, type Device } from "./core/device.ts";
import { readTensor } from "./core/safetensors.ts";
import { readSigningKey } from "./core/signing.ts";
import { driven, fetchDriver, serverAddress, uniform } from "./core/transport.ts";

const { values: options } = parseArgs({
  options: {
    server: { type: "string" },
    "operator-key": { type: "string" },
    vocabulary: { type: "string" },
    population: { type: "string", default: "default" },
    state: { type: "string" },
    "enrolment-code": { type: "string" },
    update: { type: "string", default: "random" },
    "first-time": { type: "boolean", default: false },
    turns: { type: "string", default: "1000000" },
  },
});

/**
 * A file that is written in place and synced: its number on the disk says whether it is the one that was written.
 *
 * Two copies of the facts, written one after the other: a process killed in between leaves one that is whole.
 */
function fileStore(path: string): Store {
  const places = [`${path}.0`, `${path}.1`];
  const one = (place: string): Stored | null => {
    if (!existsSync(place)) return null;
    const [sum = "", text = ""] = readFileSync(place, "utf8").split("\n");
    if (createHash("sha256").update(text).digest("hex") !== sum) return null;
    const { entries, generation, inode } = JSON.parse(text) as {
      entries: [string, string][];
      generation: number;
      inode: number;
    };
    const file = openSync(place, "r");
    const untouched = fstatSync(file).ino === inode;
    closeSync(file);
    return { entries: new Map(entries), generation, untouched };
  };
  const newest = (): Stored | null => {
    const found = places.map(one).filter((each) => each !== null);
    return found.toSorted((a, b) => b.generation - a.generation)[0] ?? null;
  };
  return {
    read: async () => {
      const found = newest();
      if (found === null && places.some((place) => existsSync(place))) throw new CannotWork(`${path} is damaged.`);
      return found;
    },
    write: async (changes, generation) => {
      const before = newest();
      if ((before?.generation ?? 0) + 1 !== generation) throw new Error("another process wrote to it");
      const entries = new Map(before?.entries);
      for (const [key, value] of changes) {
        if (value === null) entries.delete(key);
        else entries.set(key, value);
      }
      const place = places[generation % 2] as string;
      const file = openSync(place, existsSync(place) ? "r+" : "w");
      const text = JSON.stringify({ entries: [...entries], generation, inode: fstatSync(file).ino });
      const bytes = Buffer.from(createHash("sha256").update(text).digest("hex") + "\n" + text);
      writeSync(file, bytes, 0, bytes.length, 0);
      ftruncateSync(file, bytes.length);
      fsyncSync(file);
      closeSync(file);
    },
  };
}

/** Updates of no text: zero, or random and longer than the clip norm, so that clipping is tried. */
const madeUp: Training = {
  seconds: () => 0,
  train: async (_, { parameters, clip_norm }) => {
    const update = new Float32Array(parameters);
    if (options.update === "random") for (let at = 0; at < parameters; at++) update[at] = (uniform() - 0.5) * clip_norm;
    return { update, loss: 1 };
  },
};

/** Histograms of no text: "no report" in each. */
const noReport: Counting = {
  seconds: 0,
  sizes: (_, task) => ({ length: plainNothing(task).length, most: 1 }),
  check: async (_, { asks }, content) => {
    if (asks.kind !== "evaluate") throw new Refused(`this device does no tasks to ${asks.kind}.`);
    readTensor(
      content,
      "model",
      "F32",
      asks.parameters.reduce((sum, each) => sum + each, 0),
    );
  },
  answer: async (_, task) => plainNothing(task),
  nothing: async (_, task) => plainNothing(task),
};

function required(name: "server" | "operator-key" | "vocabulary" | "state"): string {
  const value = options[name];
  if (value === undefined) throw new CannotWork(`--${name} is missing.`);
  return value;
}

async function main(): Promise<void> {
  const state = required("state");
  mkdirSync(state, { recursive: true, mode: 0o700 });
  const policyFile = join(state, "policy.toml");
  const policy = existsSync(policyFile) ? readPolicy(readFileSync(policyFile, "utf8")).policy : DEFAULT_POLICY;
  readSigningKey(required("operator-key"));
  const record = await DeviceRecord.open(fileStore(join(state, "record")), fileStore(join(state, "journal")), {
    firstTime: options["first-time"],
    now: Date.now() / 1000,
    budgets: { zcdp: policy.budget_zcdp, week: policy.budget_zcdp_week },
  });
  const device: Device = {
    operatorKey: required("operator-key"),
    population: options.population,
    vocabulary: required("vocabulary"),
    policy,
    record,
    handlers: [trainHandler(madeUp, null), countHandler("evaluate", noReport)],
    sealing: null,
    enrolmentCode: options["enrolment-code"] ?? null,
    clock: () => Date.now() / 1000,
    steady: () => performance.now() / 1000,
    eligible: async () => null,
  };
  const driver = fetchDriver(serverAddress(required("server")));
  let [failures, lastBefore] = [0, 0];
  for (let turns = Number(options.turns); turns > 0; turns--) {
    const { what, why, wait } = await driven(device, driver);
    process.stdout.write(`${what}: ${why}\n`);
    failures = wait === null ? failures + 1 : 0;
    if (what === "idle") lastBefore = wait?.before ?? lastBefore;
    if (turns > 1) await driver.pause(waitAfter({ what, why, wait }, failures, lastBefore, uniform()));
  }
}

try {
  await main();
} catch (thrown) {
  process.stderr.write(`error: ${saidBy(thrown)}\n`);
  process.exitCode = 2;
}
