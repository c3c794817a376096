/** What the built page costs, as JSON lines: npm run measure -- DIST. */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";

import { chromium, type Page } from "playwright-core";

import { served } from "./served.ts";

const OWN = ["page.js", "reader_worker.js", "report_worker.js", "sw.js", "page.css", "index.html", "lattice.wasm", "app.webmanifest", "icon.svg"];
const KEYS = "I should be very glad to see you in the morning, if it is not too late for tea. ".repeat(3);
const says = (what: string, found: object): boolean => process.stdout.write(`${JSON.stringify({ what, ...found })}\n`);
const quantile = (values: readonly number[], share: number): number => Number((values.toSorted((a, b) => a - b)[Math.floor(share * (values.length - 1))] ?? NaN).toFixed(3));

const dist = process.argv[2] ?? "dist";
const own = await Promise.all(OWN.map((each) => readFile(join(dist, each))));
const sum = (sizes: readonly number[]): number => sizes.reduce((all, each) => all + each, 0);
says("own code", { gzip: sum(own.map((each) => gzipSync(each, { level: 9 }).length)), brotli: sum(own.map((each) => brotliCompressSync(each).length)) });
const names = (await readdir(dist, { recursive: true })).filter((each) => /\.br$/.test(each));
const sizes = await Promise.all(names.map(async (each) => (await readFile(join(dist, each))).length));
says("first visit, brotli", { bytes: sum(sizes), runtime: sum(sizes.filter((_, at) => names[at]?.startsWith("ort"))), model: sum(sizes.filter((_, at) => names[at]?.startsWith("model"))) });

const server = await served(dist);
const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 360, height: 740 } });
await context.addInitScript(() => {
  // How long a question to the worker takes, from the page's message to its answer.
  const asked = new Map<number, number>();
  const times: number[] = [];
  const inside: number[] = [];
  const post = Worker.prototype.postMessage as (this: Worker, message: unknown) => void;
  Object.assign(globalThis, { suggestionTimes: times, insideTimes: inside });
  Worker.prototype.postMessage = function (this: Worker, message: { kind?: string; id?: number }) {
    if (message.kind === "open") {
      this.addEventListener("message", ({ data }: MessageEvent<{ kind: string; id: number; ms: number }>) => {
        if (data.kind !== "shown") return;
        times.push(performance.now() - (asked.get(data.id) ?? NaN));
        inside.push(data.ms);
      });
    }
    if (message.kind === "show" && message.id !== undefined) asked.set(message.id, performance.now());
    post.call(this, message);
  };
});
/** When the first letter could be put in by the page's keys, and when the first words were suggested. */
const typingAt = async (page: Page): Promise<{ readonly keys: number; readonly words: number }> => {
  await page.addInitScript(() => {
    const seen: Record<string, number> = {};
    Object.assign(globalThis, { seen });
    new MutationObserver(() => {
      for (const name of ["keys", "suggestions"]) {
        if (seen[name] === undefined && document.querySelector(`#${name} button`) !== null) seen[name] = performance.now();
      }
    }).observe(document, { childList: true, subtree: true });
  });
  await page.goto(server.address);
  await page.waitForFunction(() => document.querySelector("#suggestions button") !== null);
  const seen = await page.evaluate(() => (globalThis as unknown as { seen: Record<string, number> }).seen);
  return { keys: seen["keys"] ?? NaN, words: seen["suggestions"] ?? NaN };
};
const page = await context.newPage();
const first = await typingAt(page);
await page.click("#message");
await page.keyboard.type(KEYS, { delay: 15 });
await page.waitForTimeout(200);
for (const [what, name] of [["suggestion, page to worker and back, ms", "suggestionTimes"], ["suggestion, in the worker, ms", "insideTimes"]] as const) {
  const times = await page.evaluate((name) => (globalThis as unknown as Record<string, number[]>)[name]?.slice(1) ?? [], name);
  says(what, { count: times.length, median: quantile(times, 0.5), p95: quantile(times, 0.95), most: quantile(times, 1) });
}
const memory = await page.evaluate(() => (performance as unknown as { measureUserAgentSpecificMemory?(): Promise<{ bytes: number }> }).measureUserAgentSpecificMemory?.());
says("memory of the page and its worker", { bytes: memory?.bytes ?? null });
await page.evaluate(async () => void (await navigator.serviceWorker.ready));
await context.setOffline(true);
const again: { readonly keys: number; readonly words: number }[] = [];
for (let visit = 0; visit < 10; visit++) {
  const next = await context.newPage();
  again.push(await typingAt(next));
  await next.close();
}
for (const name of ["keys", "words"] as const) {
  const found = again.map((each) => each[name]);
  says(`to ${name}, ms`, { first: Math.round(first[name]), offlineMedian: quantile(found, 0.5), offlineMost: quantile(found, 1) });
}
await browser.close();
await server.close();
