/**
 * Pages of a server that take part until standard input ends: npm run fleet. Told by one line of JSON, says lines of it.
 *
 * The pages come from the server itself, with `spy.js` before their scripts: each says what it encoded.
 */

import { createInterface } from "node:readline";

import { chromium, type Page } from "playwright-core";

interface Told {
  readonly address: string;
  readonly key: string;
  readonly population: string;
  readonly policy: string;
  /** What is typed on each page. */
  readonly texts: readonly (readonly string[])[];
}

interface Spied {
  readonly words: Uint32Array;
  readonly update: Float32Array;
  readonly seed: Uint8Array;
}

const POLL = 500; // ms between the turns of a page
const says = (what: string, found: object): boolean => process.stdout.write(`${JSON.stringify({ what, ...found })}\n`);

async function joins(page: Page, { address, key, population, policy }: Told, texts: readonly string[]): Promise<void> {
  await page.goto(address);
  await page.waitForSelector("html[data-ready]");
  for (const [at, text] of texts.entries()) {
    await page.fill("#message", text);
    await page.click("#keep");
    await page.waitForFunction((count) => document.querySelectorAll("#kept-list li").length === count, at + 1);
  }
  await page.click('nav a[href="#rules"]');
  await page.click("#policy summary");
  await page.fill("#policy-text", policy);
  await page.click("#policy button[type=submit]");
  await page.waitForFunction(() => document.querySelector("#policy-answer")?.textContent?.includes("Saved"));
  await page.click('nav a[href="#rounds"]');
  await page.fill("#operator-key", key);
  await page.fill("#population", population);
  await page.check("#first-time");
  await page.click("#join button");
}

/** What the page's record says, and what the spy saw, in the order of the participations. */
function told(page: Page): Promise<object> {
  return page.evaluate(async () => {
    const opened = await new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open("tacit-record");
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    const store = opened.transaction("entries").objectStore("entries");
    const read = <T>(request: IDBRequest<T>): Promise<T> => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
    const [keys, values] = await Promise.all([read(store.getAllKeys()), read(store.getAll())]);
    const entries = keys.map((key, at) => [String(key), JSON.parse(String(values[at]))] as const);
    const those = (begins: string): Record<string, unknown>[] => entries.filter(([key]) => key.startsWith(begins)).map(([, value]) => value as Record<string, unknown>);
    const base64 = (array: { readonly buffer: ArrayBufferLike; readonly byteOffset: number; readonly byteLength: number }): string =>
      btoa([...new Uint8Array(array.buffer, array.byteOffset, array.byteLength)].map((each) => String.fromCharCode(each)).join(""));
    const spied = (globalThis as unknown as { spied: Spied[] }).spied;
    return {
      participations: those("participation/").sort((a, b) => Number(a["at"]) - Number(b["at"])),
      reports: those("report/"),
      encoded: spied.map(({ words, update, seed }) => ({ words: base64(words), update: base64(update), seed: base64(seed) })),
    };
  });
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const asked = JSON.parse(String((await lines.next()).value)) as Told;
let over = false;
const ended = lines.next().then(() => (over = true)); // standard input is closed
const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
let [sent, received] = [0, 0];
const pages: Page[] = [];
for (const texts of asked.texts) {
  const context = await browser.newContext({ serviceWorkers: "block" }); // a worker of the page's would refuse the spy
  context.on("requestfinished", async (each) => {
    if (!new URL(each.url()).pathname.startsWith("/v1/")) return;
    const sizes = await each.sizes().catch(() => null);
    sent += (sizes?.requestBodySize ?? 0) + (sizes?.requestHeadersSize ?? 0);
    received += (sizes?.responseBodySize ?? 0) + (sizes?.responseHeadersSize ?? 0);
  });
  const page = await context.newPage();
  page.on("pageerror", (thrown) => says("error", { page: pages.indexOf(page), why: thrown.message }));
  pages.push(page);
  await joins(page, asked, texts);
}
says("joined", { pages: pages.length });
while (!over) {
  for (const page of pages) {
    await page.evaluate(() => document.querySelector<HTMLButtonElement>("#turn-now")?.click()); // nothing while a turn is under way
  }
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, POLL))]);
}
for (const [number, page] of pages.entries()) {
  await page.waitForSelector("#turn-now:enabled");
  says("page", { page: number, turn: await page.textContent("#turn"), ...(await told(page)) });
}
const session = await browser.newBrowserCDPSession();
const { processInfo } = await session.send("SystemInfo.getProcessInfo");
const cpu = (type: string): number => processInfo.filter((each) => each.type === type).reduce((sum, each) => sum + each.cpuTime, 0);
says("browser", { pagesCpu: cpu("renderer"), otherCpu: processInfo.reduce((sum, each) => sum + each.cpuTime, 0) - cpu("renderer"), sent, received });
await browser.close();
