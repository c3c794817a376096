/**
 * Faults of a page in Chromium, by seeds: it dies between any two steps, another tab has its turn, its clock jumps, its
 * databases are evicted or put back, transfers are cut, an old tab goes on. FAULTS=1000 has so many; a test has fewer.
 *
 * The server counts: whatever reached it stands in the page's record, or the page knows that its record was lost and
 * takes part in nothing more.
 */

import { existsSync } from "node:fs";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { planLine } from "../core/log.ts";
import { DEFAULT_POLICY } from "../core/policy.ts";
import { tensorFile } from "../core/safetensors.ts";
import { digest } from "../core/signing.ts";
import type * as device from "../page/device.ts";
import type * as storage from "../page/storage.ts";
import type { Exported } from "../train/exported.ts";
import { newOperator, type Operator } from "./operator.ts";
import { planSaid, TRAINING, taskSaid } from "./plans.ts";
import { seeded, type Seeded } from "./seeded.ts";
import { served, type Came, type ProtocolAnswer, type Served } from "./served.ts";

declare const tested: typeof device & typeof storage; // in the page

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const FAULTS = Number(process.env["FAULTS"] ?? 20);
const AT_ONCE = 3; // browsers
const TURNS = 10; // of a browser, whose record goes on from one to the next
const web = fileURLToPath(new URL("..", import.meta.url));
const MODEL = tensorFile("model", Float32Array.of(1, 2, 3), {});
const DATABASES = ["tacit-record", "tacit-journal", "tacit-marks"] as const;
const PROTOCOL = ["POST /v1/check-in", "GET /v1/plans", "GET /v1/log", "GET /v1/models", "POST /v1/reports"] as const;
const FASTER = 50; // the page's timers, so that it sends again soon

/** What happens at one request of a turn. */
const AT_REQUEST = ["dies before", "dies after", "cut off", "half an answer", "busy", "a page in HTML"] as const;
/** What happens around a turn; after the last five the device knows no more what it spent. */
const AROUND = ["two tabs", "an old tab", "clock back", "clock forward", "record evicted", "journal evicted", "record put back", "journal put back"] as const;
const LOSES = ["both evicted", "both put back", "marks evicted", "all but the marks put back", "all evicted"] as const;

type Fault = (typeof AT_REQUEST)[number] | (typeof AROUND)[number] | (typeof LOSES)[number];
const among = <T>(all: readonly T[], draw: Seeded): T => all[draw.below(all.length)] as T;

interface Sent {
  readonly round: number;
  readonly body: Buffer;
}

/** An operator of one browser, which gives a place in a round at each check-in and counts what it gets. */
class Counting {
  readonly sent = new Map<string, Sent>(); // by the task
  now = Date.now() / 1000;
  round = 0;
  /** What happens at a request, once. */
  next: { readonly fault: Fault; readonly at: string; readonly dies: () => Promise<void>; readonly later: number } | null = null;
  happened = false;
  private places = new Map<string, { task: string; round: number }>();
  private readonly operator: Operator;
  private readonly plan: string;
  private readonly sum: string;
  private number = 0;

  private constructor(operator: Operator, plan: string, sum: string) {
    [this.operator, this.plan, this.sum] = [operator, plan, sum];
  }

  static async begun(): Promise<Counting> {
    const separation = { rounds: 1, timer_seconds: null, clock: "start" };
    const privacy = { ...TRAINING, zcdp: 1.5, epsilon: 9.9, max_participations: null };
    const plan = planSaid({ separation, privacy });
    return new Counting(await newOperator(), plan, await digest(plan));
  }

  get key(): string {
    return this.operator.key;
  }

  async answer(came: Came): Promise<ProtocolAnswer | null> {
    const { next } = this;
    if (next === null || !`${came.method} ${came.path}`.startsWith(next.at)) return this.usual(came);
    this.next = null;
    this.happened = true;
    if (next.fault === "dies before") {
      await next.dies();
      return { status: 200, body: "", cut: "whole" };
    }
    if (next.fault === "busy") return { status: 503, body: JSON.stringify({ type: "tacit:busy", title: "busy", status: 503, detail: "busy" }) };
    if (next.fault === "a page in HTML") return { status: 200, body: "<h1>Sign in</h1>" };
    const usual = await this.usual(came); // it counts, whatever comes of the answer
    if (next.fault === "cut off") return { status: 200, body: "", cut: "whole" };
    if (next.fault === "half an answer") return usual === null ? null : { ...usual, cut: "half" };
    setTimeout(() => void next.dies(), next.later);
    return usual;
  }

  private async usual({ method, path, headers, body }: Came): Promise<ProtocolAnswer | null> {
    const json = (said: unknown): ProtocolAnswer => ({ status: 200, body: JSON.stringify(said) });
    const { operator, plan, sum } = this;
    if (path === "/v1/check-in") {
      const [task, assignment] = [`${++this.number}`.padStart(32, "0"), `${this.number}`.padStart(32, "a")];
      const { createHash } = await import("node:crypto");
      const sha256 = createHash("sha256").update(MODEL).digest("hex");
      const content = { sha256, bytes: MODEL.length, path: `/v1/models/${sha256}` };
      this.places.set(assignment, { task, round: this.round });
      const said = taskSaid({ plan: sum, content, task, round: this.round, opens: this.now - 5, deadline: this.now + 600 });
      return json({ answer: "assignment", assignment, secret: "02".repeat(32), signed_task: await operator.signed("task", said) });
    }
    if (path.startsWith("/v1/plans/")) return json({ ...(await operator.signed("plan", plan)), evidence: null });
    if (path === "/v1/log") return json(await operator.log([planLine(sum)]));
    if (path.startsWith("/v1/models/")) return { status: 200, body: MODEL };
    const assignment = path.split("/")[3] ?? "";
    const place = this.places.get(assignment);
    if (place === undefined) return null;
    if (method === "DELETE") return { status: 204, body: "" };
    const before = this.sent.get(place.task);
    expect(before === undefined || before.body.equals(body), "a report is the same bytes whenever it is sent").toBe(true);
    this.sent.set(place.task, { round: place.round, body });
    return json(await operator.signed("receipt", JSON.stringify({ assignment, sha256: headers["x-content-sha256"], received: true })));
  }
}

interface Seen {
  readonly tasks: readonly string[];
  readonly losses: number;
  readonly spent: number;
}

describe.skipIf(!existsSync(CHROMIUM))(`faults, by ${CHROMIUM} (skipped where it is not there)`, () => {
  let browser: Browser;
  let folder: string;
  let script: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tacit-faults-"));
    const contents = 'export * from "./page/storage.ts"; export * from "./page/device.ts";';
    const made = await build({ stdin: { contents, resolveDir: web, loader: "ts" }, bundle: true, write: false, format: "iife", globalName: "tested", logLevel: "error", target: "es2023" });
    script = (made.outputFiles[0]?.text ?? "").replace(/^\s*"use strict";\s*var tested/m, "globalThis.tested");
    await cp(join(web, "page", "app.webmanifest"), join(folder, "app.webmanifest"));
    await cp(join(web, "lattice", "lattice.wasm"), join(folder, "lattice.wasm"));
    // A training that says something of nobody's text.
    await writeFile(join(folder, "report_worker.js"), 'onmessage = () => postMessage({ kind: "done", value: { update: Float32Array.of(3, 4, 0), loss: 2 } });');
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  }, 300_000);

  afterAll(async () => {
    await browser?.close();
    await rm(folder, { recursive: true, force: true });
  });

  async function tab(context: BrowserContext, server: Served, clock: number): Promise<Page> {
    const page = await context.newPage();
    await page.goto(`${server.address}app.webmanifest`); // a document of the origin without a program
    await page.evaluate(
      ({ clock, faster }) => {
        const [real, timer] = [Date.now.bind(Date), globalThis.setTimeout.bind(globalThis)];
        Object.assign(globalThis, { ahead: clock - real() });
        Date.now = () => real() + (globalThis as unknown as { ahead: number }).ahead;
        globalThis.setTimeout = ((does: () => void, ms = 0) => timer(does, ms > 1000 * 20 ? ms : ms / faster)) as typeof setTimeout;
      },
      { clock: 1000 * clock, faster: FASTER },
    );
    await page.evaluate(script);
    return page;
  }

  const turn = (page: Page, server: Served, key: string, firstTime: boolean): Promise<string> =>
    page.evaluate(
      async ({ address, key, firstTime }) => {
        const opened = await tested.openStorage();
        await opened.set("policy", "send_after_s = 0\n");
        const exported = { vocabulary: { sha256: "11".repeat(32), words: [] }, network: { vocabulary: 14 }, parameters: 3, privacy: "", step: new Uint8Array(1), train: new Uint8Array(1) };
        const joined = { server: new URL(address).origin, operatorKey: key, population: "default", firstTime, enrolmentCode: null };
        return tested.takeTurn(opened, joined, exported as unknown as Exported).then((found) => (found === null ? "another tab" : `${found.what}: ${found.why}`), (thrown: Error) => `cannot work: ${thrown.message}`);
      },
      { address: server.address, key, firstTime },
    );

  const seen = (page: Page): Promise<Seen> =>
    page.evaluate(async () => {
      const found = await tested.overview(await tested.openStorage(), { server: "", operatorKey: "", population: "", firstTime: false, enrolmentCode: null });
      return { tasks: found.lines.map((each) => each.participation.task), losses: found.losses.length, spent: found.spent };
    });

  /** The content of each database, by table. */
  const copied = (page: Page): Promise<unknown> =>
    page.evaluate(async (names) => {
      const done = <T>(request: IDBRequest<T>): Promise<T> => new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
      return Promise.all(names.map(async (name) => {
        const database = await done(indexedDB.open(name));
        const tables = await Promise.all([...database.objectStoreNames].map(async (table) => {
          const store = database.transaction(table).objectStore(table);
          const [keys, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
          return [table, keys.map((key, at) => [key, values[at]])] as const;
        }));
        database.close();
        return tables;
      }));
    }, DATABASES);

  const putBack = (page: Page, places: readonly number[], content: unknown): Promise<void> =>
    page.evaluate(async ({ names, places, content }) => {
      for (const place of places) {
        const database = await new Promise<IDBDatabase>((resolve, reject) => {
          const request = indexedDB.open(names[place] as string);
          request.onsuccess = () => resolve(request.result);
          request.onerror = () => reject(request.error);
        });
        const tables = (content as [string, [IDBValidKey, unknown][]][][])[place] ?? [];
        const writing = database.transaction(tables.map(([table]) => table), "readwrite");
        for (const [table, entries] of tables) {
          writing.objectStore(table).clear();
          for (const [key, value] of entries) writing.objectStore(table).put(value, key);
        }
        await new Promise((resolve) => (writing.oncomplete = resolve));
        database.close();
      }
    }, { names: DATABASES, places, content });

  const evict = (page: Page, places: readonly number[]): Promise<void> =>
    page.evaluate(async ({ names, places }) => {
      for (const place of places) {
        await new Promise<void>((resolve, reject) => {
          const request = indexedDB.deleteDatabase(names[place] as string);
          request.onsuccess = () => resolve();
          request.onerror = () => reject(request.error);
        });
      }
    }, { names: DATABASES, places });

  const PLACES: Partial<Record<Fault, readonly number[]>> = {
    "record evicted": [0], "journal evicted": [1], "both evicted": [0, 1], "marks evicted": [2], "all evicted": [0, 1, 2],
    "record put back": [0], "journal put back": [1], "both put back": [0, 1], "all but the marks put back": [0, 1],
  };

  /** A browser from its first turn to one with a fault of which nothing can be known afterwards. How many there were. */
  async function lives(seed: number): Promise<{ readonly faults: readonly string[]; readonly sent: number }> {
    const draw = seeded(seed);
    const counting = await Counting.begun();
    const server = await served(folder, (came) => counting.answer(came), {});
    const context = await browser.newContext();
    const faults: string[] = [];
    let known: Seen = { tasks: [], losses: 0, spent: 0 };
    let before: unknown = null;
    const old = await tab(context, server, counting.now); // it looks, and at times it is the one that has the turn
    let began = false;
    for (let number = 0; number < TURNS; number++) {
      const last = number === TURNS - 1;
      const kinds: readonly Fault[] = last ? LOSES : draw.below(3) ? AT_REQUEST : before === null ? ["two tabs", "clock back", "clock forward"] : AROUND;
      const fault = among(kinds, draw);
      counting.round = draw.below(4) ? number : draw.below(number + 1); // a round again, at times
      if (before !== null && PLACES[fault] !== undefined) {
        const places = PLACES[fault];
        if (fault.endsWith("evicted")) await evict(old, places);
        else await putBack(old, places, before);
      } else if (fault !== "both put back" && began) before = await copied(old);
      if (fault === "clock forward") counting.now += 60 + draw.below(100_000);
      const clock = counting.now - (fault === "clock back" ? 70 + draw.below(100_000) : 0);
      await old.evaluate((clock) => Object.assign(globalThis, { ahead: 0 }) && Object.assign(globalThis, { ahead: clock - Date.now() }), 1000 * clock);
      const page = fault === "an old tab" ? old : await tab(context, server, clock);
      const debugging = await context.newCDPSession(page);
      const at = among(PROTOCOL, draw);
      const dies = async (): Promise<void> => void debugging.send("Page.crash").catch(() => {});
      counting.happened = false;
      counting.next = (AT_REQUEST as readonly Fault[]).includes(fault) ? { fault, at, dies, later: draw.below(25) } : null;
      const reports = counting.sent.size;
      const crashed = new Promise<string>((resolve) => page.once("crash", () => resolve("died")));
      const turns = [turn(page, server, counting.key, !began)];
      const second = fault === "two tabs" ? await tab(context, server, clock) : null;
      if (second !== null) turns.push(turn(second, server, counting.key, false));
      const told = await Promise.race([crashed, Promise.all(turns).then((each) => each.join(" | ")).catch((thrown: Error) => thrown.message)]);
      began = true;
      const happened = counting.happened || !(AT_REQUEST as readonly Fault[]).includes(fault); // else the turn asked less
      if (happened) faults.push(`${fault}${counting.happened ? ` ${at}` : ""} in round ${counting.round}: ${told}`);
      const said = `seed ${seed}, ${fault}, ${at}: ${told}\n${faults.join("\n")}`;
      await Promise.all([second, page === old ? null : page].map(async (each) => each?.close()));
      counting.next = null;
      counting.now += 2;

      const now = await seen(old);
      if (now.losses === 0) {
        for (const task of counting.sent.keys()) expect(now.tasks, said).toContain(task);
        for (const task of known.tasks) expect(now.tasks, said).toContain(task); // none was lost
      } else {
        expect(now.spent, said).toBeGreaterThanOrEqual(DEFAULT_POLICY.budget_zcdp);
        expect(counting.sent.size, said).toBe(reports); // nobody knows what was spent: nothing leaves
      }
      if (fault === "clock back") expect(counting.sent.size, said).toBe(reports);
      const rounds = [...counting.sent.values()].map((each) => each.round);
      expect(new Set(rounds).size, said).toBe(rounds.length);
      expect(now.losses > 0, said).toBe(last);
      known = now;
    }
    await context.close();
    await server.close();
    return { faults, sent: counting.sent.size };
  }

  test(`${FAULTS} of them: what reached the server stands in the record`, async () => {
    const found: { readonly faults: readonly string[]; readonly sent: number }[] = [];
    let next = 0;
    const several = async (): Promise<void> => {
      while (found.reduce((sum, each) => sum + each.faults.length, 0) < FAULTS) found.push(await lives(next++));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, several));
    const faults = found.flatMap((each) => each.faults);
    const sent = found.reduce((sum, each) => sum + each.sent, 0);
    expect(faults.length).toBeGreaterThanOrEqual(FAULTS);
    expect(sent).toBeGreaterThan(faults.length / 5); // most of what happens still ends in a report, or little was tried
    const kinds = new Map<string, number>();
    for (const each of faults) kinds.set(each.split(" in round")[0] ?? "", (kinds.get(each.split(" in round")[0] ?? "") ?? 0) + 1);
    process.stdout.write(`${JSON.stringify({ faults: faults.length, browsers: found.length, reports: sent, kinds: Object.fromEntries([...kinds].sort()) })}\n`);
  }, 60_000 + 6000 * FAULTS);
});
