/** The device behind the page: one turn under the lock, its text, its training, and what its owner sees of it. */

import { readPlan, type Plan } from "../core/documents.ts";
import { CannotWork, Refused } from "../core/errors.ts";
import { DEFAULT_POLICY, readPolicy, splitOf, type Eligibility, type Policy } from "../core/policy.ts";
import { DeviceRecord, type Loss, type Participation, type SentReport } from "../core/record.ts";
import { countHandler, countsOf, trainHandler, type Handler, type Training } from "../core/report.ts";
import type { Turn } from "../core/device.ts";
import { encodingOf, sealingOf, type JoinedRounds } from "../core/sealing.ts";
import { driven, fetchDriver, serverAddress } from "../core/transport.ts";
import { COUNTED, questionOf, secondsOf } from "../answers/answered.ts";
import type { Known, Network } from "../answers/question.ts";
import type { OwnText } from "../answers/typed_text.ts";
import type { Exported } from "../train/exported.ts";
import { costOf } from "../train/trainer.ts";
import { bundled } from "./addresses.ts";
import { Calculator } from "./calculator.ts";
import { underLock, viewOf, type Storage } from "./storage.ts";

/** Whom the device speaks with, as its owner wrote it. */
export interface Joined {
  readonly server: string;
  readonly operatorKey: string;
  readonly population: string;
  /** The owner's word that this browser took part nowhere before; used up by the first turn. */
  readonly firstTime: boolean;
  readonly enrolmentCode: string | null;
}

/** The shared model as it was when the device last trained. */
export interface LatestModel {
  readonly run: string;
  readonly round: number;
  readonly model: Float32Array<ArrayBuffer>;
}

/** What the journal shows of one participation. */
export interface JournalLine {
  readonly participation: Participation;
  readonly report: SentReport | null;
  readonly plan: Plan | null;
}

export interface Overview {
  readonly lines: readonly JournalLine[];
  readonly losses: readonly Loss[];
  readonly spent: number;
  readonly spentWeek: number;
  readonly policy: Policy;
  readonly paused: boolean;
  /** Lines of the operator's log, as it was shown last; null: it never was. */
  readonly logged: readonly string[] | null;
}

const OPERATIONS_PER_S = 2e9; // of a slow and busy device: a fiftieth of what a core does
const JUMP_SECONDS = 60; // by which a clock may be behind what it was: corrections are smaller

const now = (): number => Date.now() / 1000;
const started = { clock: now(), running: performance.now() };

export async function policyOf(storage: Storage): Promise<{ readonly policy: Policy; readonly eligibility: Eligibility }> {
  return readPolicy((await storage.setting<string>("policy")) ?? "");
}

/**
 * One turn. null where another tab has one under way.
 *
 * Throws: CannotWork where the record cannot be kept or the policy cannot be read.
 */
export async function takeTurn(storage: Storage, joined: Joined, exported: Exported): Promise<Turn | null> {
  const { policy, eligibility } = await policyOf(storage);
  const server = serverAddress(joined.server);
  const lattice = await WebAssembly.compileStreaming(fetch(bundled("lattice.wasm"), { credentials: "omit" }));
  return underLock(async () => {
    const record = await openRecord(storage, joined, policy, false);
    if (joined.firstTime) await storage.set("joined", { ...joined, firstTime: false } satisfies Joined); // said of one beginning
    const seen: Float32Array<ArrayBuffer>[] = [];
    const calculator = new Calculator(lattice);
    const reading: Reading = { storage, exported, policy };
    const training = trainHandler(trainingOf(reading, calculator, seen), encodingOf(lattice, calculator));
    const turn = await driven(
      {
        operatorKey: joined.operatorKey,
        population: joined.population,
        vocabulary: exported.vocabulary.sha256,
        policy,
        record,
        handlers: [...(exported.train === null ? [] : [training]), ...COUNTED.map((kind) => answering(kind, reading, calculator))],
        sealing: sealingOf(lattice, joinedRounds(storage), calculator),
        enrolmentCode: joined.enrolmentCode,
        clock: now,
        steady: () => performance.now() / 1000,
        eligible: () => whyNot(storage, eligibility),
      },
      fetchDriver(server),
    ).finally(() => calculator.end());
    const [model, last] = [seen.at(-1), record.participations().at(-1)];
    if (model !== undefined && last !== undefined) {
      await storage.set("latest", { run: last.run, round: last.round, model } satisfies LatestModel);
    }
    await storage.set("turn", { ...turn, at: now() });
    return turn;
  });
}

/** The sealed rounds of this browser, by name. */
function joinedRounds(storage: Storage): JoinedRounds {
  const names = async (): Promise<readonly string[]> => (await storage.setting<readonly string[]>("sealed")) ?? [];
  return { names, join: async (name) => storage.set("sealed", [...(await names()), name]) };
}

/** Uniform in [0, 1), of the system's randomness. */
export function randomShare(): number {
  return (crypto.getRandomValues(new Uint32Array(1))[0] as number) / 2 ** 32;
}

/** What the record says, without writing to it. */
export async function overview(storage: Storage, joined: Joined | null): Promise<Overview> {
  let policy = DEFAULT_POLICY;
  try {
    policy = (await policyOf(storage)).policy;
  } catch (thrown) {
    if (!(thrown instanceof CannotWork)) throw thrown; // a policy that cannot be read is shown where it is written
  }
  const record = await openRecord(storage, joined, policy, true);
  const spent = record.spent(now());
  const reports = new Map(record.reports().map((each) => [each.task, each]));
  const lines = record.participations().map((participation) => ({
    participation,
    report: reports.get(participation.task) ?? null,
    plan: planOf(record, participation.plan),
  }));
  const logged = joined === null ? null : (record.log(record.operator(joined.operatorKey))?.entries ?? null);
  return { lines: lines.toReversed(), losses: record.losses(), spent: spent.zcdp, spentWeek: spent.week, policy, paused: record.paused(), logged };
}

export async function pause(storage: Storage, joined: Joined, paused: boolean): Promise<void> {
  const { policy } = await policyOf(storage);
  const done = await underLock(async () => {
    await (await openRecord(storage, joined, policy, false)).pause(paused);
    return true;
  });
  if (done === null) throw new CannotWork("a turn is under way; what it has begun goes on. Try again when it is over.");
}

function openRecord(storage: Storage, joined: Joined | null, policy: Policy, view: boolean): Promise<DeviceRecord> {
  const [main, journal] = view ? [viewOf(storage.record), viewOf(storage.journal)] : [storage.record, storage.journal];
  const budgets = { zcdp: policy.budget_zcdp, week: policy.budget_zcdp_week };
  // Before anybody joined nothing was spent, so a view of nothing charges nothing.
  return DeviceRecord.open(main, journal, { firstTime: joined?.firstTime ?? true, now: now(), budgets });
}

function planOf(record: DeviceRecord, digest: string): Plan | null {
  const text = record.plan(digest);
  return text === null ? null : readPlan(text);
}

/** The exported network, for a worker; null where its export has no step of training. */
function networkOf({ network: settings, parameters, step, train }: Exported): Network | null {
  return train === null ? null : { settings, parameters, step, train };
}

/** Training by the exported graph, of the text that was kept. `seen` gets the models that came. */
function trainingOf(reading: Reading, calculator: Calculator, seen: Float32Array<ArrayBuffer>[]): Training {
  const { network, parameters } = reading.exported;
  const { policy } = reading;
  return {
    seconds(_plan, asks) {
      if (asks.parameters !== parameters) {
        throw new Refused(`the model of the round has ${asks.parameters} numbers, and this page's network has ${parameters}.`);
      }
      const cost = costOf(asks.client, Number(network["vocabulary"]), parameters);
      if (cost.operations > policy.largest_operations) throw new Refused(`the training takes ${cost.operations} operations: your policy's largest_operations is ${policy.largest_operations}.`);
      if (cost.bytes > 1e6 * policy.largest_memory_mb) throw new Refused(`the training takes ${cost.bytes} bytes: your policy's largest_memory_mb is ${policy.largest_memory_mb}.`);
      return cost.operations / OPERATIONS_PER_S;
    },
    async train(_plan, asks, model) {
      const own = networkOf(reading.exported);
      if (own === null) throw new CannotWork("this page's export has no step of training.");
      seen.push(new Float32Array(model));
      return calculator.train(own, new Float32Array(model), await ownText(reading), asks.client);
    },
  };
}

/** What a turn reads: the owner's text by the owner's rules, and the network that the page has. */
interface Reading {
  readonly storage: Storage;
  readonly exported: Exported;
  readonly policy: Policy;
}

async function ownText({ storage, exported: { vocabulary }, policy }: Reading): Promise<OwnText> {
  return { messages: await storage.texts(), vocabulary, split: splitOf(policy) };
}

/** Tasks of a kind whose reports are counts; each report is made in a worker, the one that says nothing too. */
function answering(kind: string, reading: Reading, calculator: Calculator): Handler {
  const { exported, policy } = reading;
  const network = kind === "evaluate" ? networkOf(exported) : null; // which no other kind needs
  const known: Known = { vocabulary: exported.vocabulary, network, split: splitOf(policy) };
  return countHandler(kind, {
    seconds: secondsOf(kind),
    sizes: (plan, task) => {
      questionOf(plan, task, known);
      if (task.asks.kind === "train") throw new Refused("the task is to train.");
      return countsOf(task.asks);
    },
    check: (plan, task, content) => questionOf(plan, task, known).check(content),
    answer: async (plan, task, content) => calculator.ask({ kind: "answer", plan, task, content, known, own: await ownText(reading) }),
    nothing: (plan, task) => calculator.ask({ kind: "answer", plan, task, content: new Uint8Array(), known, own: null }),
  });
}

/** Why the device may not work now, by its clock, battery and network; null where it may. */
async function whyNot(storage: Storage, asked: Eligibility): Promise<string | null> {
  const clock = now();
  const running = started.clock + (performance.now() - started.running) / 1000;
  const seen = (await storage.setting<number>("seen")) ?? 0;
  if (clock < Math.max(running, seen) - JUMP_SECONDS) return "this device's clock was set back; it waits until it is later than it was.";
  await storage.set("seen", Math.max(clock, seen));
  const { connection, getBattery } = navigator as Partial<Machine>;
  if (asked.unmetered && (connection?.saveData === true || connection?.type === "cellular")) return "the network is metered.";
  const battery = await getBattery?.call(navigator);
  if (battery === undefined) return null; // this browser says nothing of one
  if (asked.charging && !battery.charging) return "the battery is not charging.";
  return 100 * battery.level < asked.least_battery ? `the battery is below ${asked.least_battery}%.` : null;
}

/** What Chromium says of the machine, and other browsers do not. */
interface Machine {
  readonly connection: { readonly saveData?: boolean; readonly type?: string };
  getBattery(): Promise<{ readonly charging: boolean; readonly level: number }>;
}
