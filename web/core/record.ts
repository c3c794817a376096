/**
 * What a device remembers: its participations and their prices above all, which are durable before text is read.
 *
 * These stand in two places, a record and a journal. Whatever either has counts. Where neither is known to be the one
 * that was written last, nobody knows what was spent: all that the budget allows counts as spent.
 */

import { CannotWork, saidBy } from "./errors.ts";
import type { KeptLog } from "./log.ts";

/** A place that keeps texts by their keys. */
export interface Store {
  /**
   * All that stands there.
   *
   * `untouched` is whether this is known to be what was written there last: not copied, put back or evicted.
   * null where nothing was ever written.
   */
  read(): Promise<Stored | null>;
  /**
   * Writes all changes or none (a null removes), durable before it resolves, as generation `generation`.
   *
   * Throws where the place cannot keep them, or has another generation than the one before: somebody else wrote.
   */
  write(changes: ReadonlyMap<string, string | null>, generation: number): Promise<void>;
}

export interface Stored {
  readonly entries: ReadonlyMap<string, string>;
  readonly generation: number;
  readonly untouched: boolean;
}

/** One attempt at one round that the device took part in; or may have, before a loss: then `task` is "". */
export interface Participation {
  readonly operator: string; // the key that was pinned first of it
  readonly plan: string; // its digest
  readonly run: string;
  readonly population: string;
  readonly kind: string;
  readonly round: number;
  readonly attempt: number;
  readonly task: string;
  readonly series: string | null; // of sealed attempts that are one participation
  readonly opens: number;
  readonly deadline: number;
  readonly at: number; // by the device's clock, Unix seconds
  readonly spent: number; // zCDP of the run with this participation
}

/** What a report was, for its owner. */
export interface SentReport {
  readonly task: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly aggregation: string;
  readonly received: boolean;
  readonly why: string | null; // it had nothing to say
}

/** What a device knows of an operator: the key that it believes now, and whether it believes it still. */
export interface KnownOperator {
  readonly first: string;
  readonly key: string;
  readonly before: readonly string[]; // keys that it gave up
  readonly disowned: string | null;
  readonly otherLog: KeptLog | null; // the second list, of an operator that signed two
}

export interface Loss {
  readonly at: number;
  readonly zcdp: number;
  readonly week: number;
}

/** The tokens of an epoch. `request` is stored before it is sent, so that it is sent again as it was. */
export interface EpochTokens {
  readonly epoch: number;
  readonly request: string;
  readonly blinded: readonly { readonly prefix: string; readonly sent: string; readonly inverse: string }[];
  readonly tokens: readonly string[] | null; // null: asked for, and no answer came
  readonly shown: number;
}

const WEEK = 7 * 24 * 3600;

/** A device's memory. What is put into it is durable before the promise resolves, or it throws. */
export class DeviceRecord {
  private readonly main: Store;
  private readonly journal: Store;
  private readonly entries: Map<string, string>;
  private generations: [number, number];

  private constructor(main: Store, journal: Store, entries: Map<string, string>, generations: [number, number]) {
    this.main = main;
    this.journal = journal;
    this.entries = entries;
    this.generations = generations;
  }

  /**
   * Opens both places, gives each what it lacks of the other, and charges a loss.
   *
   * `firstTime` is the owner's word that this device took part nowhere before; it counts only where both are empty.
   * Throws: CannotWork where a place cannot be read or written.
   */
  static async open(
    main: Store,
    journal: Store,
    {
      firstTime,
      now,
      budgets,
    }: { firstTime: boolean; now: number; budgets: { readonly zcdp: number; readonly week: number } },
  ): Promise<DeviceRecord> {
    const [kept, again] = [await main.read(), await journal.read()];
    const entries = new Map([...(again?.entries ?? []), ...(kept?.entries ?? [])]);
    const record = new DeviceRecord(main, journal, entries, [kept?.generation ?? 0, again?.generation ?? 0]);
    const changes = new Map(
      [...entries].filter(([key]) => !kept?.entries.has(key) || (counts(key) && !again?.entries.has(key))),
    );
    const known = kept?.untouched === true || again?.untouched === true;
    const fresh = kept === null && again === null && firstTime;
    if (!known && !fresh) {
      const loss: Loss = { at: now, zcdp: finiteOr0(budgets.zcdp), week: finiteOr0(budgets.week) };
      changes.set(`loss/${now}`, JSON.stringify(loss));
    }
    await record.commit(changes);
    return record;
  }

  participations(): readonly Participation[] {
    return this.all<Participation>("participation/").toSorted((a, b) => a.at - b.at);
  }

  losses(): readonly Loss[] {
    return this.all<Loss>("loss/");
  }

  reports(): readonly SentReport[] {
    return this.all<SentReport>("report/");
  }

  operator(pinned: string): KnownOperator {
    const found = this.all<KnownOperator>("operator/").find(
      (each) => each.key === pinned || each.first === pinned || each.before.includes(pinned),
    );
    return found ?? { first: pinned, key: pinned, before: [], disowned: null, otherLog: null };
  }

  log(operator: KnownOperator): KeptLog | null {
    return this.one<KeptLog>(`log/${operator.first}`);
  }

  tokens(operator: KnownOperator): readonly EpochTokens[] {
    return this.all<EpochTokens>(`tokens/${operator.first}/`);
  }

  /** The text of a plan by its digest, for the owner. */
  plan(digest: string): string | null {
    return this.one<string>(`plan/${digest}`);
  }

  paused(): boolean {
    return this.one<boolean>("paused") ?? false;
  }

  /** What this device spent in all, and in the runs of the last seven days (each counted whole), in zCDP. */
  spent(now: number): { readonly zcdp: number; readonly week: number; readonly runs: ReadonlyMap<string, number> } {
    const runs = new Map<string, number>();
    const recent = new Set<string>();
    for (const each of this.participations()) {
      runs.set(each.plan, Math.max(runs.get(each.plan) ?? 0, each.spent));
      if (each.at > now - WEEK) recent.add(each.plan);
    }
    const lost = this.losses();
    const total = (values: Iterable<number>): number => [...values].reduce((sum, each) => sum + each, 0);
    return {
      runs,
      zcdp: total(runs.values()) + total(lost.map((each) => each.zcdp)),
      week:
        total([...recent].map((plan) => runs.get(plan) ?? 0)) +
        total(lost.filter((each) => each.at > now - WEEK).map((each) => each.week)),
    };
  }

  async takePart(participation: Participation): Promise<void> {
    const { plan, round, attempt, task } = participation;
    await this.put(`participation/${plan}/${round}/${attempt}/${task}`, participation);
  }

  /** Takes a participation back of which certainly nothing left the device. */
  async takeBack({ plan, round, attempt, task }: Participation): Promise<void> {
    await this.commit(
      new Map([
        [`participation/${plan}/${round}/${attempt}/${task}`, null],
        [`report/${task}`, null],
      ]),
    );
  }

  async keepReport(report: SentReport): Promise<void> {
    await this.put(`report/${report.task}`, report);
  }

  async keepOperator(operator: KnownOperator): Promise<void> {
    await this.put(`operator/${operator.first}`, operator);
  }

  async keepLog(operator: KnownOperator, log: KeptLog): Promise<void> {
    await this.put(`log/${operator.first}`, log);
  }

  async keepPlan(digest: string, document: string): Promise<void> {
    await this.put(`plan/${digest}`, document);
  }

  async keepTokens(operator: KnownOperator, tokens: EpochTokens): Promise<void> {
    await this.put(`tokens/${operator.first}/${tokens.epoch}`, tokens);
  }

  /** Forgets the tokens of epochs before this one: they are worth nothing. */
  async endEpochs(operator: KnownOperator, epoch: number): Promise<void> {
    const over = this.tokens(operator).filter((each) => each.epoch < epoch);
    if (over.length === 0) return;
    await this.commit(new Map(over.map((each) => [`tokens/${operator.first}/${each.epoch}`, null])));
  }

  async pause(paused: boolean): Promise<void> {
    await this.put("paused", paused);
  }

  /** Removes the plans of runs in which the device never took part. What it took part in stays. */
  async forget(): Promise<void> {
    const used = new Set(this.participations().map((each) => `plan/${each.plan}`));
    const unused = [...this.entries.keys()].filter((key) => key.startsWith("plan/") && !used.has(key));
    if (unused.length > 0) await this.commit(new Map(unused.map((key) => [key, null])));
  }

  private async put(key: string, value: unknown): Promise<void> {
    await this.commit(new Map([[key, JSON.stringify(value)]]));
  }

  private async commit(changes: ReadonlyMap<string, string | null>): Promise<void> {
    const prices = new Map([...changes].filter(([key]) => counts(key)));
    const [main, journal] = this.generations;
    try {
      await this.journal.write(prices, journal + 1);
      this.generations = [main, journal + 1];
      await this.main.write(changes, main + 1);
    } catch (thrown) {
      throw new CannotWork(`the record cannot be written: ${saidBy(thrown)}`);
    }
    this.generations = [main + 1, journal + 1];
    for (const [key, value] of changes) {
      if (value === null) this.entries.delete(key);
      else this.entries.set(key, value);
    }
  }

  private one<T>(key: string): T | null {
    const text = this.entries.get(key);
    return text === undefined ? null : parsed<T>(key, text);
  }

  private all<T>(prefix: string): readonly T[] {
    return [...this.entries].filter(([key]) => key.startsWith(prefix)).map(([key, text]) => parsed<T>(key, text));
  }
}

/** Whether a key stands in the journal, too: what was spent. */
function counts(key: string): boolean {
  return key.startsWith("participation/") || key.startsWith("loss/");
}

function parsed<T>(key: string, text: string): T {
  try {
    return JSON.parse(text) as T; // what this file wrote
  } catch {
    throw new CannotWork(`the record is damaged: its entry '${key}' cannot be read.`);
  }
}

function finiteOr0(budget: number): number {
  return Number.isFinite(budget) ? budget : 0;
}

/** A store in memory, for tests and for what need not last. */
export class MemoryStore implements Store {
  private stored: Stored | null = null;

  async read(): Promise<Stored | null> {
    return this.stored;
  }

  async write(changes: ReadonlyMap<string, string | null>, generation: number): Promise<void> {
    if (generation !== (this.stored?.generation ?? 0) + 1) throw new Error("somebody else wrote to it");
    const entries = new Map(this.stored?.entries);
    for (const [key, value] of changes) {
      if (value === null) entries.delete(key);
      else entries.set(key, value);
    }
    this.stored = { entries, generation, untouched: true };
  }

  /** What it would be after somebody had put a copy in its place. */
  copied(): MemoryStore {
    const copy = new MemoryStore();
    copy.stored = this.stored === null ? null : { ...this.stored, untouched: false };
    return copy;
  }
}
