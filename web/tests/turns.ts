/** Turns of a device against a server in memory, for tests: no network, and a clock that goes on by pauses. */

import { sha256, toHex } from "../core/bytes.ts";
import { planLine } from "../core/log.ts";
import { DEFAULT_POLICY, type Policy } from "../core/policy.ts";
import { DeviceRecord, MemoryStore } from "../core/record.ts";
import { trainHandler, type Training } from "../core/report.ts";
import { tensorFile } from "../core/safetensors.ts";
import type { Answered, Ask, Came, Request } from "../core/asks.ts";
import type { Device, Turn } from "../core/device.ts";
import { turn } from "../core/session.ts";
import { digest } from "../core/signing.ts";
import { newOperator, type Operator } from "./operator.ts";
import { planSaid, taskSaid } from "./plans.ts";

export const OPENS = 1_800_000_000;
export const ASSIGNMENT = "01".repeat(16);
export const MODEL = tensorFile("model", Float32Array.of(1, 2, 3), {});

/** A server of one plan and one task, which keeps what it was asked. */
export interface Server {
  readonly operator: Operator;
  readonly asked: string[];
  answer(asks: Request): Promise<Came>;
}

export interface Changed {
  readonly plan?: Record<string, unknown>;
  readonly task?: Record<string, unknown>;
  readonly lines?: (digest: string) => readonly string[];
  readonly model?: Uint8Array<ArrayBuffer>;
  readonly on?: (asks: Request, usual: () => Promise<Came>) => Promise<Came>;
  readonly operator?: Operator;
}

export function json(value: unknown, status = 200): Answered {
  const body = new TextEncoder().encode(JSON.stringify(value));
  return { kind: "answered", status, headers: {}, body, whole: true };
}

export function problem(status: number, type: string, headers: Record<string, string> = {}): Answered {
  return { ...json({ type, title: "", status, detail: "because." }, status), headers };
}

export async function server(changed: Changed = {}): Promise<Server> {
  const operator = changed.operator ?? (await newOperator());
  const plan = planSaid(changed.plan ?? {});
  const sum = await digest(plan);
  const model = changed.model ?? MODEL;
  const sha = toHex(await sha256(model));
  const content = { sha256: sha, bytes: model.length, path: `/v1/models/${sha}` };
  const task = await operator.signed("task", taskSaid({ plan: sum, content, ...changed.task }));
  const log = await operator.log((changed.lines ?? ((each) => [planLine(each)]))(sum));
  const asked: string[] = [];
  const usual = async ({ method, path, body, headers }: Request): Promise<Came> => {
    if (path === "/v1/check-in")
      return json({ answer: "assignment", assignment: ASSIGNMENT, secret: "02".repeat(32), signed_task: task });
    if (path === `/v1/plans/${sum}`) return json({ ...(await operator.signed("plan", plan)), evidence: null });
    if (path === "/v1/log") return json(log);
    if (path === `/v1/models/${sha}`) return { kind: "answered", status: 200, headers: {}, body: model, whole: true };
    if (method === "DELETE") return { kind: "answered", status: 204, headers: {}, body: new Uint8Array(), whole: true };
    const receipt = { assignment: ASSIGNMENT, sha256: headers["x-content-sha256"], received: true };
    if (method === "POST" && body) return json(await operator.signed("receipt", JSON.stringify(receipt)));
    return problem(404, "tacit:not-found");
  };
  return {
    operator,
    asked,
    answer: (asks) => {
      asked.push(`${asks.method} ${asks.path}`);
      return changed.on === undefined ? usual(asks) : changed.on(asks, () => usual(asks));
    },
  };
}

export const BUDGETS = { zcdp: DEFAULT_POLICY.budget_zcdp, week: DEFAULT_POLICY.budget_zcdp_week };

export async function newRecord(firstTime = true): Promise<DeviceRecord> {
  return DeviceRecord.open(new MemoryStore(), new MemoryStore(), { firstTime, now: OPENS, budgets: BUDGETS });
}

export interface Settings {
  readonly record?: DeviceRecord;
  readonly policy?: Partial<Policy>;
  readonly training?: Training;
  readonly code?: string;
  readonly clock?: Time;
}

/** A device's time. setBy: seconds by which its clock was set, which the steady one is not. */
export interface Time {
  now: number;
  setBy?: number;
}

export const HALF: Training = { seconds: () => 0, train: async () => ({ update: Float32Array.of(3, 4, 0), loss: 2 }) };

export async function deviceOf(
  { operator }: { operator: Operator },
  settings: Settings = {},
): Promise<Device & { readonly time: Time }> {
  const time = settings.clock ?? { now: OPENS + 1 };
  return {
    time,
    operatorKey: operator.key,
    population: "default",
    vocabulary: "11".repeat(32),
    policy: { ...DEFAULT_POLICY, ...settings.policy },
    record: settings.record ?? (await newRecord()),
    handlers: [trainHandler(settings.training ?? HALF, null)],
    sealing: null,
    enrolmentCode: settings.code ?? null,
    clock: () => time.now + (time.setBy ?? 0),
    steady: () => time.now,
    eligible: async () => null,
  };
}

export interface Seen {
  readonly turn: Turn;
  readonly requests: readonly Request[];
  readonly order: readonly string[];
}

/** A turn, whose clock goes on by its pauses; `dies` ends it before the ask of that number. */
export async function played(
  server: Server,
  device: Device & { readonly time: Time },
  dies = Infinity,
): Promise<Seen | null> {
  const steps = turn(device);
  const requests: Request[] = [];
  const order: string[] = [];
  let next = await steps.next();
  for (let asks = 0; !next.done; asks++) {
    if (asks === dies) return null;
    next = await steps.next(await came(next.value));
  }
  return { turn: next.value, requests, order };
  async function came(asks: Ask): Promise<Came> {
    order.push(asks.kind === "request" ? `${asks.method} ${asks.path.split("/")[2]}` : asks.kind);
    if (asks.kind === "request") {
      requests.push(asks);
      return server.answer(asks);
    }
    if (asks.kind === "pause") {
      device.time.now += asks.to;
      return { kind: "done", value: null };
    }
    return asks.run().then(
      (value): Came => ({ kind: "done", value }),
      (thrown: Error): Came => ({ kind: "failed", why: thrown.message }),
    );
  }
}

export async function turned(changed: Changed = {}, settings: Settings = {}): Promise<Seen> {
  const one = await server(changed);
  return (await played(one, await deviceOf(one, settings))) as Seen;
}

export function body({ requests }: Seen): Uint8Array {
  return requests.findLast(({ path }) => path.startsWith("/v1/reports/"))?.body as Uint8Array;
}
