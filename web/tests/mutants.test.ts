/** Hostile plans, tasks, logs and models, as the other program refuses them too (tests/vectors/mutants.json). */

import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { answered, COUNTED, questionOf } from "../answers/answered.ts";
import type { Known } from "../answers/question.ts";
import type { Ask, Came } from "../core/asks.ts";
import { fromHex, joined, sha256, toHex, utf8 } from "../core/bytes.ts";
import type { Device } from "../core/device.ts";
import { leafOf, rootOf } from "../core/log.ts";
import { readPolicy } from "../core/policy.ts";
import { DeviceRecord, MemoryStore } from "../core/record.ts";
import { countHandler, countsOf, trainHandler } from "../core/report.ts";
import { seedOf } from "../core/seal/round.ts";
import { behindItsLength } from "../core/seal/wire.ts";
import { calculationsOf, encodingOf, sealingOf } from "../core/sealing.ts";
import { turn } from "../core/session.ts";
import { digest } from "../core/signing.ts";
import { Refused } from "../core/errors.ts";
import { readSplit } from "../core/split.ts";
import { readVocabulary } from "../train/vocabulary.ts";
import { LATTICE } from "./lattice.ts";
import { operatorOf } from "./operator.ts";
import { json, problem } from "./turns.ts";

type Said = Record<string, unknown>;

interface Mutant {
  readonly name: string;
  readonly base: string;
  readonly in: string;
  readonly set?: Said;
  readonly remove?: readonly string[];
  readonly behind?: readonly [string, string];
  readonly replace?: readonly [string, string];
  readonly by?: string;
  readonly reason: string;
  readonly what: string;
}

interface Base {
  readonly plan: Said;
  readonly task: Said;
  readonly settings?: Readonly<Record<string, string>>;
  readonly content: string;
  readonly key?: Said;
  readonly lines?: readonly string[];
}

interface Vectors {
  readonly population: string;
  readonly words: string;
  readonly network: Said;
  readonly split: string;
  readonly code: string;
  readonly now: number;
  readonly keys: Readonly<Record<string, { readonly private: string; readonly public: string }>>;
  readonly bases: Readonly<Record<string, Base>>;
  readonly cases: readonly Mutant[];
}

const said = JSON.parse(readFileSync(new URL("../../tests/vectors/mutants.json", import.meta.url), "utf8")) as Vectors;
const PLACE = "3d".repeat(16);
const { policy } = readPolicy(`split = "${said.split}"`);
const [parameters = 0] = (said.bases["evaluate"]?.task["asks"] as { readonly parameters: readonly number[] }).parameters;
const known: Known = {
  vocabulary: await readVocabulary(said.words),
  network: { settings: said.network, parameters, step: utf8(""), train: utf8("") },
  split: readSplit(said.split),
};

function inside(document: Said, path: string): [Said, string] {
  const names = path.split(".");
  const last = names.pop() as string;
  return [names.reduce((place, name) => place[name] as Said, document), last];
}

/** A document, with the change of a case where it is of this one. */
function patched(document: Said, each: Mutant, what: string): Said {
  if (each.in !== what) return document;
  const copy = structuredClone(document);
  for (const [path, value] of Object.entries(each.set ?? {})) {
    const [place, last] = inside(copy, path);
    place[last] = value;
  }
  for (const path of each.remove ?? []) {
    const [place, last] = inside(copy, path);
    delete place[last];
  }
  if (each.behind !== undefined) {
    const [place, last] = inside(copy, each.behind[0]);
    place[last] = `${String(place[last])}${each.behind[1]}`;
  }
  return copy;
}

/** The text of a document, with that change. */
function changed(document: Said, each: Mutant, what: string): string {
  const text = JSON.stringify(patched(document, each, what));
  if (each.in !== what || each.replace === undefined) return text;
  expect(text.split(each.replace[0]).length, each.name).toBe(2);
  return text.replace(each.replace[0], () => each.replace?.[1] ?? "");
}

/** The settings of a task's sealed round, in digits; null where its base has none. */
async function sealedDigits({ settings, task }: Base, each: Mutant, plan: string): Promise<string | null> {
  if (settings === undefined) return null;
  const { encoded } = task["asks"] as { readonly encoded?: { readonly signs: string } | null };
  const seed = await seedOf(plan, Number(task["round"]), String(task["task"]), fromHex(encoded?.signs ?? ""));
  const fields = Object.values(patched(settings, each, "settings")).map((field) => String(field).replace("PLAN", plan).replace("SEED", toHex(seed)));
  return toHex(joined(...fields.map((field) => behindItsLength(fromHex(field)))));
}

/** A server that answers what the bases and a case say, by the path alone. */
async function serverOf(each: Mutant): Promise<(asks: { readonly method: string; readonly path: string }) => Promise<Came>> {
  const base = said.bases[each.base];
  if (base === undefined) throw new Error(each.base);
  const [ours, other] = await Promise.all(["operator", "another"].map((name) => operatorOf(fromHex(said.keys[name]?.private ?? ""))));
  if (ours === undefined || other === undefined) throw new Error("keys");
  const signed = (purpose: "plan" | "task" | "head" | "token-key", text: string, of: string = purpose) => (each.by === "another" && each.in === of ? other : ours).signed(purpose, text);
  const key = changed(base.key ?? {}, each, "key");
  const keySum = await digest(key);
  const plan = changed(base.plan, each, "plan");
  const sum = await digest(plan);
  const content = fromHex(each.in === "content" ? String(each.set?.["content"]) : base.content);
  const sha = toHex(await sha256(content));
  const named = { sha256: sha, bytes: content.length, path: `/v1/models/${sha}` };
  const task = changed({ ...base.task, plan: sum, content: named, sealed: await sealedDigits(base, each, sum) }, each, "task");
  const lines = (each.in === "log" ? (each.set?.["lines"] as readonly string[]) : (base.lines ?? ["plan PLAN"])).map((line) => line.replace("PLAN", sum).replace("KEY", keySum));
  const root = toHex(await rootOf(await Promise.all(lines.map(leafOf))));
  return async ({ method, path }) => {
    if (path === "/v1/check-in" && base.key !== undefined) return problem(401, "tacit:token");
    if (path === "/v1/tokens/key") return json(await signed("token-key", key, "key"));
    if (path === "/v1/check-in") return json({ answer: "assignment", assignment: PLACE, secret: "78".repeat(32), signed_task: await signed("task", task) });
    if (path.startsWith("/v1/plans/")) return json({ ...(await signed("plan", plan)), evidence: null });
    if (path === "/v1/log") return json({ head: await signed("head", changed({ size: lines.length, root }, each, "head")), entries: lines });
    if (path.startsWith("/v1/models/")) return { kind: "answered", status: 200, headers: {}, body: content, whole: true };
    return method === "DELETE" ? { kind: "answered", status: 204, headers: {}, body: utf8(""), whole: true } : problem(404, "tacit:not-found");
  };
}

/** One turn of a new device; whether its text was read, and all that it asked. */
async function played(each: Mutant) {
  const answer = await serverOf(each);
  const budgets = { zcdp: policy.budget_zcdp, week: policy.budget_zcdp_week };
  const record = await DeviceRecord.open(new MemoryStore(), new MemoryStore(), { firstTime: true, now: said.now, budgets });
  let [read, now] = [false, said.now];
  const reading = async (): Promise<never> => {
    read = true;
    throw new Error("the text is read");
  };
  const [calculations, training] = [calculationsOf(LATTICE), { seconds: () => 0, train: reading }];
  const answers = COUNTED.map((kind) => countHandler(kind, {
    seconds: 0,
    sizes: (plan, task) => {
      questionOf(plan, task, known);
      if (task.asks.kind === "train") throw new Refused("the task is to train.");
      return countsOf(task.asks);
    },
    check: (plan, task, content) => questionOf(plan, task, known).check(content),
    answer: reading,
    nothing: (plan, task) => answered({ plan, task, content: utf8(""), known, own: null }),
  }));
  const sealed: string[] = [];
  const joinedRounds = { names: async () => sealed, join: async (name: string) => void sealed.push(name) };
  const device: Device = {
    operatorKey: said.keys["operator"]?.public ?? "",
    population: said.population,
    vocabulary: known.vocabulary.sha256,
    policy,
    record,
    handlers: [trainHandler(training, encodingOf(LATTICE, calculations)), ...answers],
    sealing: sealingOf(LATTICE, joinedRounds, calculations),
    enrolmentCode: said.code,
    clock: () => now,
    steady: () => now,
    eligible: async () => null,
  };
  const asked: string[] = [];
  const came = async (asks: Ask): Promise<Came> => {
    if (asks.kind === "request") {
      asked.push(`${asks.method} ${asks.path}`);
      return answer(asks);
    }
    if (asks.kind === "work") {
      return asks.run().then((value): Came => ({ kind: "done", value }), (thrown: Error): Came => ({ kind: "failed", why: thrown.message }));
    }
    now += asks.to;
    return { kind: "done", value: null };
  };
  const steps = turn(device);
  let next = await steps.next();
  while (!next.done) next = await steps.next(await came(next.value));
  return { turn: next.value, read, asked, participations: record.participations() };
}

test.each(Object.keys(said.bases))("as it is the device follows the base '%s'", async (base) => {
  const found = await played({ name: base, base, in: "nothing", reason: "", what: "" });
  const enrolling = said.bases[base]?.key !== undefined;
  expect([found.turn.what, found.read, found.participations.length], found.turn.why).toEqual(enrolling ? ["unanswered", false, 0] : ["lost", true, 1]);
  expect(found.asked.at(-1)).toMatch(enrolling ? /^POST .v1.tokens$/ : /^POST .v1.reports/);
});

describe("of each the device reads no text, and remembers no participation", () => {
  test.each(said.cases)("$name: $reason", async (each) => {
    const { turn, read, asked, participations } = await played(each);
    expect([turn.what, read, participations], turn.why).toEqual([each.what, false, []]);
    expect(asked.filter((path) => path.startsWith("POST /v1/reports"))).toEqual([]);
    if (said.bases[each.base]?.key === undefined) expect(asked).toContain(`DELETE /v1/reports/${PLACE}`);
    else expect(asked).not.toContain("POST /v1/tokens");
  });
});
