/**
 * What the built page costs, as JSON lines, at a `tacit serve --web` of one round: benchmarks/web_device.py starts it.
 *
 *     npm run measure -- DIST SERVER OPERATOR_KEY [small]
 *
 * Milliseconds are the page's clock; CPU-seconds and memory are those of the browser's processes, as Linux has them.
 */

import { readdir, readFile } from "node:fs/promises";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";

import type { ToReporter } from "../answers/messages.ts";
import { SPECIALS } from "../train/ids.ts";

const [dist = "dist", server = "", operatorKey = "", size = "full"] = process.argv.slice(2);
const SMALL = size === "small";
const SENTENCE = "I should be very glad to see you in the morning, if it is not too late for tea. ";
const KEYS = SENTENCE.repeat(SMALL ? 1 : 3);
const KEPT = 32; // sentences
const VISITS = SMALL ? 2 : 10;
const EVERY = 50; // milliseconds between two looks at the memory
const TICKS = 100; // a second, of /proc
const PATIENCE = 120_000; // milliseconds for a round
const ENTRIES = ["page/page.ts", "answers/report_worker.ts", "page/sw.ts"];

const says = (what: string, found: object): boolean => process.stdout.write(`${JSON.stringify({ what, ...found })}\n`);
const sum = (sizes: readonly number[]): number => sizes.reduce((all, each) => all + each, 0);
const gzipped = (contents: readonly Uint8Array[]): number => sum(contents.map((each) => gzipSync(each, { level: 9 }).length));
const quantile = (values: readonly number[], share: number): number => Number((values.toSorted((a, b) => a - b)[Math.floor(share * (values.length - 1))] ?? NaN).toFixed(3));

/** Everything but the model, then what of it comes before the first key; and without packages, built anew. */
async function ownCode(): Promise<void> {
  const names = (await readdir(dist)).filter((each) => /\.(js|css|html|svg|webmanifest|wasm)$/.test(each));
  const contents = new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(dist, name))] as const)));
  const first = new Set<string>(["index.html", "page.css", "page.js"]);
  for (const name of first) {
    for (const [, part = ""] of (contents.get(name) ?? "").toString().matchAll(/(?:from|import)"\.\/(part-\w+\.js)"/g)) first.add(part);
  }
  const alone = await build({ entryPoints: ENTRIES, bundle: true, splitting: true, packages: "external", minify: true, format: "esm", target: "es2023", write: false, outdir: "out", logLevel: "error" });
  const others = [...contents].filter(([name]) => !name.endsWith(".js")).map(([, content]) => content);
  says("own code, gzip", {
    bytes: gzipped([...contents.values()]),
    toTyping: gzipped([...first].map((each) => contents.get(each) as Uint8Array)),
    withoutPackages: gzipped([...alone.outputFiles.map((each) => each.contents), ...others]),
    files: names.length,
  });
}

interface Status {
  readonly pid: number;
  readonly parent: number;
  readonly seconds: number; // of CPU, with children that ended
}

/** The browser's processes that live. */
function processes(root: number): readonly Status[] {
  const all: Status[] = [];
  for (const name of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    try {
      const fields = readFileSync(`/proc/${name}/stat`, "latin1").split(") ").at(-1)?.split(" ") ?? [];
      all.push({ pid: Number(name), parent: Number(fields[1]), seconds: sum(fields.slice(11, 15).map(Number)) / TICKS });
    } catch {
      // it ended meanwhile
    }
  }
  const found = new Set([root]);
  for (const pid of found) for (const each of all) if (each.parent === pid) found.add(each.pid);
  return all.filter((each) => found.has(each.pid));
}

const cpuOf = (root: number): number => sum(processes(root).map((each) => each.seconds));

/** MB of proportional set size: all renderers, where pages and their workers are, and all processes. */
function memoryOf(root: number): { readonly renderers: number; readonly browser: number } {
  let [renderers, browser] = [0, 0];
  for (const { pid } of processes(root)) {
    try {
      const kilobytes = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "latin1"))?.[1]);
      browser += kilobytes / 1e3;
      if (readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("--type=renderer")) renderers += kilobytes / 1e3;
    } catch {
      // it ended meanwhile
    }
  }
  return { renderers, browser };
}

async function withBrowser(does: (browser: Browser, root: number) => Promise<void>): Promise<void> {
  const started = await chromium.launchServer({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  try {
    const browser = await chromium.connect(started.wsEndpoint());
    await does(browser, started.process().pid as number);
    await browser.close();
  } finally {
    await started.close();
  }
}

/** When the first letter could be put in by the page's keys, and when the first words were suggested. */
async function typingAt(page: Page): Promise<{ readonly keys: number; readonly words: number }> {
  await page.addInitScript(() => {
    const seen: Record<string, number> = {};
    Object.assign(globalThis, { seen });
    new MutationObserver(() => {
      for (const name of ["keys", "suggestions"]) {
        if (seen[name] === undefined && document.querySelector(`#${name} button`) !== null) seen[name] = performance.now();
      }
    }).observe(document, { childList: true, subtree: true });
  });
  await page.goto(server);
  await page.waitForFunction(() => document.querySelector("#suggestions button") !== null);
  const seen = await page.evaluate(() => (globalThis as unknown as { seen: Record<string, number> }).seen);
  return { keys: seen["keys"] ?? NaN, words: seen["suggestions"] ?? NaN };
}

async function visits(browser: Browser): Promise<void> {
  const context = await browser.newContext({ viewport: { width: 360, height: 740 } });
  const page = await context.newPage();
  const first = await typingAt(page);
  await page.waitForSelector("html[data-ready]");
  await page.evaluate(async () => void (await navigator.serviceWorker.ready));
  await context.setOffline(true);
  const again: { readonly keys: number; readonly words: number }[] = [];
  for (let visit = 0; visit < VISITS; visit++) {
    const next = await context.newPage();
    again.push(await typingAt(next));
    await next.close();
  }
  for (const name of ["keys", "words"] as const) {
    const found = again.map((each) => each[name]);
    says(`to ${name}, ms`, { firstVisit: Math.round(first[name]), offlineMedian: quantile(found, 0.5), offlineMost: quantile(found, 1) });
  }
  await context.close();
}

/** Has the page say how long each key took until its words were there: from its `input` event, and from the key itself. */
async function timed(context: BrowserContext): Promise<void> {
  await context.addInitScript(() => {
    const times: [number, number][] = [];
    Object.assign(globalThis, { times });
    let [key, began] = [NaN, NaN];
    addEventListener("keydown", (event) => (key = event.timeStamp), true);
    addEventListener("input", () => (began = performance.now()), true); // before the page hears of it
    addEventListener("input", () => times.push([performance.now() - began, performance.now() - key])); // and after
  });
}

async function suggestions(browser: Browser): Promise<void> {
  const context = await browser.newContext({ viewport: { width: 360, height: 740 }, bypassCSP: true }); // a worker of this test trains
  await timed(context);
  const page = await context.newPage();
  await page.goto(server);
  await page.waitForSelector("html[data-ready]");
  await page.click("#message");
  const type = async (what: string): Promise<void> => {
    await page.keyboard.type(SENTENCE, { delay: 15 }); // until its code is compiled
    await page.evaluate(() => void (globalThis as unknown as { times: unknown[] }).times.splice(0));
    await page.keyboard.type(KEYS, { delay: 15 });
    await page.waitForTimeout(200);
    const times = await page.evaluate(() => (globalThis as unknown as { times: [number, number][] }).times);
    for (const [where, at] of [["from input to words", 0], ["from key to words", 1]] as const) {
      const found = times.map((each) => each[at]);
      says(`a suggestion, ${what}, ${where}, ms`, { count: found.length, median: quantile(found, 0.5), p95: quantile(found, 0.95), most: quantile(found, 1) });
    }
  };
  await type("not training");
  await page.evaluate(async ({ kept, text, specials }) => {
    const bytes = async (name: string): Promise<Uint8Array<ArrayBuffer>> => new Uint8Array(await (await fetch(`model/${name}`)).arrayBuffer());
    const read = async <T>(name: string): Promise<T> => JSON.parse(new TextDecoder().decode(await bytes(name))) as T;
    const { parameters } = await read<{ readonly parameters: number }>("manifest.json");
    const { sha256, words, lowercase, language, emoji } = await read<{ sha256: string; words: string[]; lowercase: boolean; language: string; emoji: boolean }>("vocabulary.json");
    const vocabulary = { sha256, words, writing: { lowercase, language, emoji }, ids: new Map(words.map((each, at) => [each, at + specials])) };
    const worker = new Worker("report_worker.js", { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<{ why?: string }>) => document.documentElement.setAttribute("data-failed", data.why ?? "it ended");
    worker.postMessage({
      kind: "train",
      lattice: await WebAssembly.compile(await bytes("../lattice.wasm")),
      network: { settings: {}, parameters, step: await bytes("step.onnx"), train: await bytes("train.onnx") },
      model: new Float32Array(parameters).fill(0.01),
      own: { messages: Array.from({ length: kept }, (_, at) => ({ at, text })), vocabulary, split: null },
      client: { epochs: 1e6, batch_size: 8, learning_rate: 1e-6, sentences: kept, words: 20, proximal: 0, precision: "float32" },
    } satisfies ToReporter);
  }, { kept: KEPT, text: SENTENCE, specials: SPECIALS });
  await type("training");
  const failed = await page.getAttribute("html", "data-failed");
  if (failed !== null) throw new Error(`the training beside was none: ${failed}`);
  await context.close();
}

async function round(browser: Browser, root: number): Promise<void> {
  const context = await browser.newContext({ viewport: { width: 360, height: 740 } });
  const page = await context.newPage();
  const blank = memoryOf(root);
  await page.goto(server);
  await page.waitForSelector("html[data-ready]");
  await page.fill("#message", Array.from({ length: KEPT }, () => SENTENCE.trim()).join("\n"));
  await page.click("#keep");
  await page.click('nav a[href="#rules"]');
  await page.click("#policy summary");
  await page.fill("#policy-text", "send_after_s = 1\n");
  await page.click("#policy button[type=submit]");
  await page.click('nav a[href="#rounds"]');
  await page.fill("#operator-key", operatorKey);
  await page.check("#first-time");
  await page.waitForTimeout(500);
  const [idle, before] = [memoryOf(root), cpuOf(root)];
  let peak = idle;
  const looks = setInterval(() => {
    const now = memoryOf(root);
    peak = { renderers: Math.max(peak.renderers, now.renderers), browser: Math.max(peak.browser, now.browser) };
  }, EVERY);
  await page.click("#join button");
  await page.waitForFunction(() => /took part|refused|could not|cannot|No answer/.test(document.querySelector("#turn")?.textContent ?? ""), undefined, { timeout: PATIENCE });
  clearInterval(looks);
  const taken = cpuOf(root) - before;
  const said = (await page.textContent("#turn")) ?? "";
  if (!said.includes("took part")) throw new Error(`the page took part in nothing: ${said}`);
  says(`a round, ${KEPT} sentences, CPU-s of all the browser's processes`, { seconds: Number(taken.toFixed(2)) });
  const rounded = (found: object): object => Object.fromEntries(Object.entries(found).map(([name, value]) => [name, Math.round(value as number)]));
  says("memory, MB (PSS), no page", rounded(blank));
  says("memory, MB (PSS), the page before the round", rounded(idle));
  says("memory, MB (PSS), the most in the round", rounded({ ...peak, page: peak.renderers - blank.renderers }));
  await context.close();
}

await ownCode();
await withBrowser(async (browser) => {
  await visits(browser);
  await suggestions(browser);
});
await withBrowser(round);
