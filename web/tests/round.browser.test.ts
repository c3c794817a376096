/** A round in Chromium, with an operator in this process: what leaves is the update, and nothing else tells of the text. */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { accuracyOf } from "../answers/evaluate.ts";
import { cellOf } from "../answers/histograms.ts";
import { built } from "../build.ts";
import { planLine } from "../core/log.ts";
import { clipped } from "../core/report.ts";
import { readTensor, tensorFile } from "../core/safetensors.ts";
import { digest } from "../core/signing.ts";
import { loadExported } from "../train/exported.ts";
import { nextWordsOf } from "../train/next_words.ts";
import { stepperOf } from "../train/stepper.ts";
import { batchesOf, localUpdate } from "../train/trainer.ts";
import { encode } from "../train/vocabulary.ts";
import { newOperator } from "./operator.ts";
import { planSaid, TRAIN, taskSaid } from "./plans.ts";
import { served, type Came, type Protocol, type Served } from "./served.ts";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const PATIENCE = [2, 10, 50]; // seconds, after which a report is sent
const web = fileURLToPath(new URL("..", import.meta.url));
const model = join(web, "tests", "fixtures", "training");
const TEXTS = ["one two three four", "two three xylophone", "five six seven"];
const SECRET = "xylophone";
const ASKS = { ...TRAIN, parameters: 0, client: { ...TRAIN.client, learning_rate: 0.5 }, clip_norm: 0.1 };
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** What is asked of one device. */
interface Round {
  readonly plan: Readonly<Record<string, unknown>>;
  readonly asks: Readonly<Record<string, unknown>>;
  readonly content: Uint8Array<ArrayBuffer>;
  readonly seconds: number;
}

const ONCE = { report_goal: 3, rounds: 1, max_participations: 1 };
const HISTOGRAMS = { ...ONCE, kind: "histograms", zcdp: 0.02, epsilon: 2, delta: 1e-5, histograms: [2], noise_multiplier: 5 };
const LOCAL = { ...ONCE, kind: "local", zcdp: 0.5, local_epsilon: 1 };
const planOnce = (kind: string, privacy: object, recipe: string) => ({ kind, privacy, recipe, separation: { rounds: 1, timer_seconds: null, clock: "start" } });
const STATISTICS = `
[[settings.statistics]]
statistic = "words"
cuts = [5.0, 9.0, 20.0]
[[settings.statistics]]
statistic = "unknown_share"
cuts = [0.05, 0.5]
`;
const COUNT: Round = {
  plan: planOnce("count", HISTOGRAMS, STATISTICS), asks: { kind: "count", cells: [5, 4], local_epsilon: null, norms: null }, content: new Uint8Array(10), seconds: 300,
};

describe.skipIf(!existsSync(CHROMIUM))(`a round, by ${CHROMIUM} (skipped where it is not there)`, { timeout: 600_000 }, () => {
  const out = join(tmpdir(), `tacit-round-${process.pid}`);
  let browser: Browser;
  let start: Float32Array<ArrayBuffer>;

  beforeAll(async () => {
    await built(web, model, out);
    const { model: numbers } = JSON.parse(await readFile(join(model, "expected.json"), "utf8")) as { readonly model: readonly number[] };
    start = Float32Array.from(numbers);
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  }, 300_000);

  afterAll(async () => {
    await browser?.close();
  });

  /** A server of one round, whose receipts fail so often. */
  async function operating(vocabulary: string, lost: number, { plan: said, asks, content, seconds }: Round): Promise<{ readonly server: Served; readonly key: string }> {
    const operator = await newOperator();
    const plan = planSaid({ ...said, vocabulary });
    const now = Date.now() / 1000;
    const named = { sha256: sha256(content), bytes: content.length, path: `/v1/models/${sha256(content)}` };
    const task = taskSaid({ plan: await digest(plan), content: named, asks, opens: now - 5, deadline: now + seconds });
    const assignment = "01".repeat(16);
    let [given, failures] = [false, lost];
    const json = (said: unknown): { status: number; body: string } => ({ status: 200, body: JSON.stringify(said) });
    const answers: Protocol = async ({ path, method, headers }: Came) => {
      if (path === "/v1/check-in") {
        if (given) return json({ answer: "come_back", after_s: 3600, before_s: 7200 });
        given = true;
        return json({ answer: "assignment", assignment, secret: "02".repeat(32), signed_task: await operator.signed("task", task) });
      }
      if (path.startsWith("/v1/plans/")) return json({ ...(await operator.signed("plan", plan)), evidence: null });
      if (path === "/v1/log") return json(await operator.log([planLine(await digest(plan))]));
      if (path.startsWith("/v1/models/")) return { status: 200, body: content };
      if (method !== "POST" || !path.startsWith("/v1/reports/")) return null;
      if (failures-- > 0) return { status: 503, body: JSON.stringify({ type: "tacit:busy", title: "busy", status: 503, detail: "busy" }) };
      return json(await operator.signed("receipt", JSON.stringify({ assignment, sha256: headers["x-content-sha256"], received: true })));
    };
    return { server: await served(out, answers), key: operator.key };
  }

  const training = (): Round => ({ plan: {}, asks: { ...ASKS, parameters: start.length }, content: tensorFile("model", start, {}), seconds: 300 });

  interface Taken {
    readonly page: Page;
    readonly server: Served;
    readonly reports: readonly Buffer[];
    readonly errors: readonly string[];
  }

  /** A page's first turn. On a machine too busy to answer in the time that the policy says, it says nothing: then another's. */
  async function takesPart(texts: readonly string[], lost = 0, round: Round = training(), policy = ""): Promise<Taken> {
    for (const seconds of PATIENCE) {
      const taken = await turnOf(texts, lost, round, `send_after_s = ${seconds}\n${policy}`);
      if (!(await taken.page.textContent("#turn"))?.includes("it took longer than") || seconds === PATIENCE.at(-1)) return taken;
      await taken.page.context().close();
      await taken.server.close();
    }
    throw new Error("no patience at all");
  }

  async function turnOf(texts: readonly string[], lost: number, round: Round, policy: string): Promise<Taken> {
    const exported = await loadExported(async (name) => new Uint8Array(await readFile(join(model, name))));
    const { server, key } = await operating(exported.vocabulary.sha256, lost, round);
    const page = await (await browser.newContext()).newPage();
    const errors: string[] = [];
    page.on("pageerror", (thrown) => errors.push(thrown.message));
    await page.goto(server.address);
    await page.waitForSelector("html[data-ready]");
    for (const [at, text] of texts.entries()) {
      await page.fill("#message", text);
      await page.click("#keep");
      await expect.poll(() => page.locator("#kept-list li").count()).toBe(at + 1);
    }
    await page.click('nav a[href="#rules"]');
    await page.click("#policy summary");
    await page.fill("#policy-text", policy);
    await page.click("#policy button[type=submit]");
    await expect.poll(() => page.textContent("#policy-answer")).toContain("Saved");
    await page.click('nav a[href="#rounds"]');
    await page.fill("#operator-key", key);
    await page.check("#first-time");
    await page.click("#join button");
    await expect.poll(() => page.textContent("#turn"), { timeout: 180_000 }).toMatch(/took part|refused|No answer/);
    const reports = server.seen.filter(({ method, path }) => method === "POST" && path.startsWith("/v1/reports/")).map((each) => each.body);
    return { page, server, reports, errors };
  }

  test("the report is the clipped update on the kept text, and the journal has it", async () => {
    const { page, server, reports, errors } = await takesPart(TEXTS);
    expect(await page.textContent("#turn")).toContain("The device took part. The operator signed for the report.");
    expect(reports.length).toBe(1);
    const found = readTensor(new Uint8Array(reports[0] as Buffer), "update", "F32", start.length);

    const exported = await loadExported(async (name) => new Uint8Array(await readFile(join(model, name))));
    const ids = TEXTS.flatMap((each) => encode(exported.vocabulary, each));
    const client = ASKS.client as Parameters<typeof localUpdate>[3];
    const stepper = stepperOf(exported.train as Uint8Array<ArrayBuffer>);
    const { update, loss } = localUpdate(stepper, start, batchesOf(ids, [0, 1, 2], client), client); // one batch: its order is nothing
    const wanted = clipped(new Float32Array(update), loss, { ...ASKS, parameters: start.length } as Parameters<typeof clipped>[2]).update;
    expect(Math.hypot(...found)).toBeCloseTo(0.1, 5);
    expect(Math.hypot(...found.map((each, at) => each - (wanted[at] as number)))).toBeLessThan(1e-5);

    await page.click('nav a[href="#left"]');
    const journal = await page.textContent("#journal");
    expect(journal).toContain("Round 0 of es");
    expect(journal).toContain(sha256(reports[0] as Buffer));
    expect(journal).toContain("signed by the operator");
    await page.click('nav a[href="#type"]');
    await page.click("#compare summary");
    await expect.poll(() => page.textContent("#compare-about")).toContain("round 0 of es");
    expect(await page.isEnabled("#use-latest")).toBe(true);
    const others = server.seen.filter((each) => !each.body.equals(reports[0] as Buffer));
    expect(others.filter(({ path, headers, body }) => JSON.stringify([path, headers, body.toString("latin1")]).includes(SECRET))).toEqual([]);
    expect((reports[0] as Buffer).includes(SECRET)).toBe(false);
    expect(errors).toEqual([]);
    await page.context().close();
    await server.close();
  });

  test("with other text, or with none, the requests are the same and the report is as long", async () => {
    const seen: string[][] = [];
    for (const texts of [TEXTS, ["ten"], []]) {
      const { page, server, reports } = await takesPart(texts);
      expect(await page.textContent("#turn")).toContain("took part");
      seen.push(server.seen.filter(({ path }) => path.startsWith("/v1/")).map(({ method, path, body }) => `${method} ${path.slice(0, 12)} ${body.length}`));
      expect(reports.length).toBe(1);
      await page.context().close();
      await server.close();
    }
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[2]).toEqual(seen[0]);
  });

  test("a server that is busy gets the same bytes again, and the record one participation", async () => {
    const { page, server, reports } = await takesPart(TEXTS, 2);
    expect(await page.textContent("#turn")).toContain("took part. The operator signed");
    expect(reports.length).toBe(3);
    for (const each of reports) expect(each.equals(reports[0] as Buffer)).toBe(true);
    await page.click('nav a[href="#left"]');
    expect(await page.locator("#journal li.card").count()).toBe(1);
    await page.context().close();
    await server.close();
  });

  /** The words of the one report of a round, and the journal's text after it. */
  async function counts(round: Round, texts: readonly string[], policy?: string): Promise<{ readonly words: Uint32Array; readonly journal: string; readonly requests: readonly string[] }> {
    const { page, server, reports, errors } = await takesPart(texts, 0, round, policy);
    expect(await page.textContent("#turn")).toContain("The device took part. The operator signed for the report.");
    expect(reports.length).toBe(1);
    expect(errors).toEqual([]);
    const { cells = [0], local_epsilon, question, reports: hidden } = round.asks as { cells?: number[]; local_epsilon?: number | null; question?: { words: string[] }; reports?: object };
    const length = hidden === undefined ? cells.reduce((sum, each) => sum + each, 0) + (local_epsilon === null ? 0 : cells.length) : (question?.words.length ?? 0) + 2;
    const words = readTensor(new Uint8Array(reports[0] as Buffer), "words", "U32", length);
    await page.click('nav a[href="#left"]');
    const journal = (await page.textContent("#journal")) ?? "";
    const seen = server.seen.filter(({ path }) => path.startsWith("/v1/"));
    expect(seen.filter(({ path, headers, body }) => JSON.stringify([path, headers, body.toString("latin1")]).includes(SECRET))).toEqual([]);
    await page.context().close();
    await server.close();
    return { words, journal, requests: seen.map(({ method, path, body }) => `${method} ${path.slice(0, 12)} ${body.length}`) };
  }

  test("to count: the device is in one cell of each histogram, and with no text the requests are the same", async () => {
    const [some, none] = [await counts(COUNT, TEXTS), await counts(COUNT, [])];
    expect([...some.words]).toEqual([0, 0, 1, 0, 0, 0, 1, 0, 0]); // ten words, one in ten unknown
    expect([...none.words]).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 1]); // no word, and no share of none
    expect(none.requests).toEqual(some.requests);
    expect(some.journal).toContain("counting words (count)");
    expect(some.journal).toContain("0.02 zCDP");
  });

  test("to discover: votes that no text decides, for words that the page does not know", async () => {
    const reports = { local_epsilon: 1, contributions: 1, sampler: "random", randomizer: "subset-selection" };
    const round: Round = {
      plan: planOnce("discover", LOCAL, "[reports]\nlocal_epsilon = 1.0\n"),
      asks: { kind: "discover", question: { about: "words", words: ["yes", "zebra"] }, reports },
      content: new Uint8Array(await readFile(join(model, "vocabulary.json"))),
      seconds: 300,
    };
    const { words, journal } = await counts(round, TEXTS);
    expect(words.reduce((sum, each) => sum + each, 0)).toBe(2); // of four answers, ceil(4 / (e + 1))
    expect(Math.max(...words)).toBe(1);
    expect(journal).toContain("finding new words (discover)");
    expect(journal).toContain("0.5 zCDP");
  });

  test("to evaluate: the cell of the accuracy on text that no training reads, which the owner has to keep", async () => {
    const recipe = `[[models]]\n[models.network]\nkind = "cifg"\nembedding = 8\nunits = 16\ntied = false\n[settings]\n`;
    const asks = { kind: "evaluate", cells: [63], local_epsilon: null, parameters: [start.length] };
    const round: Round = { plan: planOnce("evaluate", { ...HISTOGRAMS, histograms: [1] }, recipe), asks, content: tensorFile("model", start, {}), seconds: 60 };
    const { words, journal } = await counts(round, TEXTS, 'split = "count:1"\n');
    const exported = await loadExported(async (name) => new Uint8Array(await readFile(join(model, name))));
    const accuracy = accuracyOf(nextWordsOf(exported.step), TEXTS.slice(1).flatMap((each) => encode(exported.vocabulary, each)));
    expect(words.indexOf(1)).toBe(cellOf({ slices: [], bins: Array.from({ length: 61 }, (_, at) => at / 100) }, 0, accuracy));
    expect(words.reduce((sum, each) => sum + each, 0)).toBe(1);
    expect(journal).toContain("judging models (evaluate)");
    const { page, server, reports } = await takesPart(TEXTS, 0, round);
    expect(await page.textContent("#turn")).toContain("keep some for that (split in the policy)");
    expect(reports).toEqual([]);
    await page.click('nav a[href="#rules"]');
    expect(await page.textContent("#policy")).toContain("judging models of one's own (this page does no such task)");
    await page.context().close();
    await server.close();
  });
});
