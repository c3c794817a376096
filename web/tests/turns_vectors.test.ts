/** Whole turns, step by step, as the other program takes them (tests/vectors/turns.json). */

import { existsSync, readFileSync } from "node:fs";
import { afterEach, describe, expect, test, vi } from "vitest";

import type { Ask, Came } from "../core/asks.ts";
import { fromHex, toHex, utf8 } from "../core/bytes.ts";
import { waitAfter, type Device } from "../core/device.ts";
import { Refused } from "../core/errors.ts";
import { DEFAULT_POLICY, type Policy } from "../core/policy.ts";
import { DeviceRecord, MemoryStore } from "../core/record.ts";
import { trainHandler, type Training } from "../core/report.ts";
import { turn } from "../core/session.ts";

interface Body {
  readonly text?: string;
  readonly hex?: string;
}
interface Step {
  readonly ask?: { readonly method: string; readonly path: string; readonly body?: unknown };
  readonly answer?: { readonly status?: number; readonly body?: string; readonly "no answer"?: string };
  readonly wait?: readonly [number, number];
}
interface Played {
  readonly now: number;
  readonly trainer: string;
  readonly code: string | null;
  readonly first_time?: boolean;
  readonly died?: boolean;
  readonly draws?: readonly string[];
  readonly steps: readonly Step[];
  readonly outcome?: { readonly what: string; readonly wait: readonly [number, number] };
  readonly record: {
    readonly operator: string;
    readonly participations: readonly { readonly round: number; readonly zcdp: number; readonly received: boolean }[];
    readonly log: number;
    readonly disbelieves: boolean;
    readonly spent: number;
  };
}
interface Turns {
  readonly operator: string;
  readonly population: string;
  readonly vocabulary: string;
  readonly update: readonly number[];
  readonly bodies: Readonly<Record<string, Body>>;
  readonly cases: readonly {
    readonly name: string;
    readonly policy: Partial<Policy>;
    readonly turns: readonly Played[];
  }[];
}

const FILE = new URL("../../tests/vectors/turns.json", import.meta.url);
const said = existsSync(FILE) ? (JSON.parse(readFileSync(FILE, "utf8")) as Turns) : null;

function bytesOf(name: string | undefined): Uint8Array<ArrayBuffer> {
  const body = name === undefined ? {} : said?.bodies[name];
  return body?.hex === undefined ? utf8(body?.text ?? "") : fromHex(body.hex);
}

/** Random bytes as they were drawn: the blinded messages are then the same, and so what signs them. */
function drawing(draws: readonly string[]): void {
  const left = [...draws];
  const drawn = (array: Uint8Array): Uint8Array => {
    array.set(fromHex(left.shift() ?? ""));
    return array;
  };
  vi.spyOn(crypto, "getRandomValues").mockImplementation(drawn as never);
}

afterEach(() => void vi.restoreAllMocks());

/** What a device would do with a text of this kind. */
function trainer(kind: string, policy: Policy): Training {
  return {
    seconds: () => {
      // Some kB and some thousand operations: what its sizes take is the trainer's to say.
      if (policy.largest_memory_mb < 0.01 || policy.largest_operations < 1000) throw new Refused("too large");
      return 0;
    },
    train: async () => {
      if (kind !== "trains" && kind !== "not finite") throw new Error("no text");
      const update = Float32Array.from(said?.update ?? []);
      if (kind === "not finite") update[0] = NaN;
      return { update, loss: 1 };
    },
  };
}

async function replay(device: Device & { time: { now: number } }, played: Played): Promise<unknown> {
  const answers = played.steps.flatMap(({ answer }) => (answer === undefined ? [] : [answer]));
  const seen: string[] = [];
  const came = async (asks: Ask): Promise<Came | null> => {
    if (asks.kind === "work") {
      return asks.run().then(
        (value): Came => ({ kind: "done", value }),
        (thrown: Error): Came => ({ kind: "failed", why: thrown.message }),
      );
    }
    if (asks.kind === "pause") {
      seen.push(`wait ${asks.from} ${asks.to}`);
      device.time.now += asks.to;
      return { kind: "done", value: null };
    }
    const named = asks.body !== null && asks.path.startsWith("/v1/reports/") ? ` ${toHex(asks.body)}` : "";
    const check = ["/v1/check-in", "/v1/tokens"].includes(asks.path)
      ? ` ${JSON.stringify(JSON.parse(new TextDecoder().decode(asks.body as Uint8Array)))}`
      : "";
    seen.push(`${asks.method} ${asks.path}${named}${check}`);
    const answer = answers.shift();
    if (answer === undefined && played.died === true) return null;
    if (answer === undefined) throw new Error(`asked more: ${seen.at(-1)}`);
    const none = answer["no answer"];
    if (none !== undefined) return { kind: "failed", why: none, unreached: none === "no connection" };
    return { kind: "answered", status: answer.status ?? 0, headers: {}, body: bytesOf(answer.body), whole: true };
  };
  const wanted = played.steps.flatMap(({ ask, wait }) => {
    if (wait !== undefined) return [`wait ${wait[0]} ${wait[1]}`];
    if (ask === undefined) return [];
    const report =
      ask.path.startsWith("/v1/reports/") && typeof ask.body === "string" ? ` ${toHex(bytesOf(ask.body))}` : "";
    const check = ["/v1/check-in", "/v1/tokens"].includes(ask.path) ? ` ${JSON.stringify(ask.body)}` : "";
    return [`${ask.method} ${ask.path}${report}${check}`];
  });
  // A device that died after an answer had not yet done anything with it; after a write it had.
  const last = played.steps.at(-1);
  if (played.died === true && last?.answer !== undefined) answers.pop();
  const steps = turn(device);
  let next = await steps.next();
  while (!next.done) {
    if (played.died === true && seen.length === wanted.length && next.value.kind !== "work") break;
    const arrives = await came(next.value);
    if (arrives === null) break;
    next = await steps.next(arrives);
  }
  const told = next.done ? (next.value as { why: string }).why : "";
  expect(seen, told).toEqual(wanted);
  return next.done ? next.value : null;
}

describe.skipIf(said === null)("turns", () => {
  // Sealed rounds need an encoding and a sealing: their own tests play these turns.
  test.each(said?.cases.filter(({ name }) => !name.startsWith("sealed:")) ?? [])("$name", async ({ policy, turns }) => {
    const whole = { ...DEFAULT_POLICY, ...policy };
    const stores = [new MemoryStore(), new MemoryStore()] as const;
    const open = (played: Played) =>
      DeviceRecord.open(...stores, {
        firstTime: played.first_time ?? true,
        now: played.now,
        budgets: { zcdp: whole.budget_zcdp, week: whole.budget_zcdp_week },
      });
    for (const played of turns) {
      drawing(played.draws ?? []);
      const record = await open(played);
      const time = { now: played.now };
      const device = {
        time,
        operatorKey: said?.operator ?? "",
        population: said?.population ?? "",
        vocabulary: said?.vocabulary ?? "",
        policy: whole,
        record,
        handlers: [trainHandler(trainer(played.trainer, whole), null)],
        sealing: null,
        enrolmentCode: played.code,
        clock: () => time.now,
        steady: () => time.now,
        eligible: async () => null,
      };
      const outcome = (await replay(device, played)) as { what: string; wait: unknown; why: string } | null;
      if (played.outcome !== undefined && outcome !== null) {
        const wait = [0, 1].map((random) => waitAfter(outcome as never, 1, 0, random));
        expect({ what: outcome.what, wait }).toEqual({ what: played.outcome.what, wait: played.outcome.wait });
      }
      const operator = record.operator(said?.operator ?? "");
      const reports = new Map(record.reports().map((each) => [each.task, each.received]));
      const kept = record.participations();
      expect({
        operator: operator.key,
        rounds: kept.map(({ round, task }) => [round, reports.get(task) ?? false]),
        log: record.log(operator)?.entries.length ?? 0,
        disbelieves: operator.disowned !== null,
      }).toEqual({
        operator: played.record.operator,
        rounds: played.record.participations.map(({ round, received }) => [round, received]),
        log: played.record.log,
        disbelieves: played.record.disbelieves,
      });
      for (const [at, { zcdp }] of played.record.participations.entries()) expect(kept[at]?.spent).toBeCloseTo(zcdp, 9);
      expect(record.spent(time.now).zcdp).toBeCloseTo(played.record.spent, 9);
    }
  });
});
