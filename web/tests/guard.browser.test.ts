/** A kept page and its host: another bundle is taken where the publisher's log shows it, and in no other case. */

import { existsSync } from "node:fs";
import { appendFile, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { built } from "../build.ts";
import { bundleLine, planLine } from "../core/log.ts";
import { newOperator, type Operator } from "./operator.ts";
import { served, type Served } from "./served.ts";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const WAITS = { timeout: 180_000 }; // ms, on a busy machine
const web = fileURLToPath(new URL("..", import.meta.url));
const model = join(web, "tests", "fixtures", "training");
// What a host would send that goes round every check: it is active at once, and answers with a page of its own.
const EVIL = `
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  if (event.request.mode === "navigate") event.respondWith(new Response("<title>another page</title>", { headers: { "content-type": "text/html" } }));
});
`;

describe.skipIf(!existsSync(CHROMIUM))(`a kept page, by ${CHROMIUM} (skipped where it is not there)`, { timeout: 300_000 }, () => {
  let publisher: Operator;
  let folder: string;
  let next: Operator; // who publishes after a change of the key
  let [first, second, third] = ["", "", ""]; // digests
  let browser: Browser;
  let context: BrowserContext;
  let host: Served;
  const hosted = (): string => join(folder, "host");

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tacit-guard-"));
    publisher = await newOperator();
    first = await built(web, model, join(folder, "first"), { publisher: publisher.key });
    second = await built(web, model, join(folder, "second"), { publisher: publisher.key, servers: ["https://fl.example.org"] });
    next = await newOperator();
    third = await built(web, model, join(folder, "third"), { publisher: next.key });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  }, 300_000);

  afterAll(async () => {
    await browser?.close();
    await rm(folder, { recursive: true, force: true });
  });

  beforeEach(async () => {
    await hosts("first");
    host = await served(hosted());
    context = await browser.newContext();
  });

  afterEach(async () => {
    await context.close();
    await host.close();
    await rm(hosted(), { recursive: true, force: true });
  });

  async function hosts(which: "first" | "second" | "third"): Promise<void> {
    await cp(join(folder, which), hosted(), { recursive: true });
  }

  async function shows(lines: readonly string[], by = publisher): Promise<void> {
    await writeFile(join(hosted(), "log.json"), JSON.stringify(await by.log(lines)));
  }

  async function opened(): Promise<Page> {
    const page = await context.newPage();
    await page.goto(host.address);
    await page.waitForSelector("html[data-ready]");
    return page;
  }

  const warning = (page: Page): Promise<string | null> => page.textContent("#warning");
  const said = (page: Page): Promise<string | null> => page.textContent("#bundle");

  /** A page whose first bundle is kept, and its tab closed. */
  async function keptFirst(): Promise<readonly string[]> {
    const lines = [planLine("ab".repeat(32)), bundleLine(first)];
    await shows(lines);
    const page = await opened();
    await page.evaluate(async () => void (await navigator.serviceWorker.ready));
    await page.close();
    return lines;
  }

  test("a first bundle that the log does not show is not kept, and the page says so", async () => {
    const page = await opened(); // the host has no log
    await expect.poll(() => warning(page), WAITS).toContain("is not kept here");
    expect(await warning(page)).toContain("the host has no log.json (404)");
    await page.close();
    await shows([planLine("ab".repeat(32))]);
    const again = await opened();
    await expect.poll(() => warning(again), WAITS).toContain(`the log does not have the bundle ${first.slice(0, 16)}`);
    expect(await again.evaluate(async () => (await navigator.serviceWorker.getRegistration())?.active ?? null)).toBe(null);
  });

  test("one that it shows is kept, and the page says which, by whose log, and works without its host", async () => {
    await keptFirst();
    const page = await opened();
    await expect.poll(() => said(page), WAITS).toContain(`entry 2 of 2 of the log of ${publisher.key}`);
    expect(await said(page)).toContain(first);
    await context.setOffline(true);
    const offline = await opened();
    await expect.poll(() => warning(offline), WAITS).toContain("was not taken");
    expect(await said(offline)).toContain(first);
  });

  const refusals: readonly (readonly [string, string, (lines: readonly string[]) => Promise<void>])[] = [
    ["the log does not show", "the log does not have the bundle", async () => {}],
    ["no log shows", "the host has no log.json", () => rm(join(hosted(), "log.json"))],
    ["another's log shows", "did not sign the head", async (lines) => shows([...lines, bundleLine(second)], await newOperator())],
    ["a log shows that was written anew", "two logs that differ from entry 0 on", async (lines) => shows([planLine("cd".repeat(32)), ...lines.slice(1), bundleLine(second)])],
    ["has a file that it does not name", "page.js is not of the bundle", async (lines) => {
      await shows([...lines, bundleLine(second)]);
      await appendFile(join(hosted(), "page.js"), "\n//");
    }],
    ["has another digest than its files", "digest is not that of its files", async (lines) => {
      await shows([...lines, bundleLine(second)]);
      const said = JSON.parse(await readFile(join(hosted(), "bundle.json"), "utf8")) as { files: Record<string, string> };
      said.files["page.css"] = "ab".repeat(32);
      await writeFile(join(hosted(), "bundle.json"), JSON.stringify(said));
    }],
  ];
  test.each(refusals)("a bundle that %s is not taken: the page stays as it is, and says why", async (_, why, spoil) => {
    const lines = await keptFirst();
    await hosts("second");
    await spoil(lines);
    for (let visit = 0; visit < 2; visit++) {
      const page = await opened();
      await expect.poll(() => warning(page), WAITS).toContain(why);
      expect(await said(page)).toContain(first);
      expect(await said(page)).not.toContain("Next bundle");
      expect(await page.inputValue("#server")).toBe(new URL(host.address).origin); // the second one's is another
      await page.close();
    }
  });

  test("one that it shows is taken, and used when no tab of the one before is open", async () => {
    const lines = await keptFirst();
    await hosts("second");
    await shows([...lines, bundleLine(second)]);
    const page = await opened();
    await expect.poll(() => said(page), WAITS).toContain(`${second}, used when all tabs`);
    const beside = await opened();
    await expect.poll(() => said(beside), WAITS).toContain(second);
    expect(await beside.inputValue("#server")).not.toContain("fl.example.org");
    await page.close();
    await beside.close();
    const after = await opened();
    await expect.poll(() => said(after), WAITS).toContain(`entry 3 of 3 of the log of ${publisher.key}`);
    expect(await after.inputValue("#server")).toBe("https://fl.example.org");
    expect(await after.evaluate(async () => (await caches.keys()).filter((each) => each.startsWith("tacit-page-")))).toEqual([`tacit-page-${second}`]);
    expect(await after.isVisible("#warning")).toBe(false);
    await after.close();

    await hosts("first"); // an older one, which the log shows, too
    const older = await opened();
    await expect.poll(() => warning(older), WAITS).toContain("is older than the one that is here");
    expect(await older.inputValue("#server")).toBe("https://fl.example.org");
  });

  test("a file that the browser dropped is taken from the host only where it is that of the bundle", async () => {
    await keptFirst();
    const page = await opened();
    await page.evaluate(async () => {
      for (const name of await caches.keys()) if (name.startsWith("tacit-page-")) await (await caches.open(name)).delete(new URL("page.css", location.href).href);
    });
    const asks = (): Promise<string> => page.evaluate(() => fetch("page.css").then((answer) => `${answer.status}`, String));
    expect(await asks()).toBe("200");
    await appendFile(join(hosted(), "page.css"), "\n");
    expect(await asks()).toContain("TypeError");
  });

  test("the service worker is the same for every bundle of a publisher, and another is taken where a bundle of the log names it", async () => {
    const guards = await Promise.all(["first", "second", "third"].map((each) => readFile(join(folder, each, "sw.js"), "utf8")));
    expect([guards[1] === guards[0], guards[2] === guards[0]]).toEqual([true, false]);
    const lines = await keptFirst();
    await hosts("third");
    await shows([...lines, bundleLine(third)]); // by the key that this page knows
    const page = await opened();
    await expect.poll(() => said(page), WAITS).toContain(`${third}, used when all tabs`);
    await page.evaluate(updates);
    await expect.poll(() => page.evaluate(waits), WAITS).toBe(true);
    expect(await page.isVisible("#warning")).toBe(false);
    await page.close();
    const after = await opened();
    await expect.poll(() => said(after), WAITS).toContain(`entry 3 of 3 of the log of ${next.key}`);
    await after.evaluate(updates);
    await after.waitForTimeout(1500);
    expect(await warning(after)).toBe("");
  });

  test("another service worker that no bundle names is said at once", async () => {
    await keptFirst();
    const page = await opened();
    await expect.poll(() => said(page), WAITS).toContain("entry 2 of 2");
    expect(await page.isVisible("#warning")).toBe(false);
    await writeFile(join(hosted(), "sw.js"), EVIL);
    await page.evaluate(updates);
    await expect.poll(() => warning(page), WAITS).toContain("was replaced by its host");
  });

  test("nor does it help the host to send the page the old one's file", async () => {
    await keptFirst();
    const page = await opened();
    await expect.poll(() => said(page), WAITS).toContain("entry 2 of 2");
    const honest = await readFile(join(hosted(), "sw.js"), "utf8");
    await writeFile(join(hosted(), "sw.js"), EVIL);
    await page.route("**/sw.js", (route) => route.fulfill({ body: honest, contentType: "text/javascript" })); // of what the page asks for
    await page.evaluate(updates);
    await expect.poll(() => warning(page), WAITS).toContain("was replaced by its host");
  });
});

/** As the browser does by itself. */
async function updates(): Promise<void> {
  await (await navigator.serviceWorker.getRegistration())?.update();
}

/** Whether another worker is here, and is not used yet: a browser with a debugger keeps the one before. */
async function waits(): Promise<boolean> {
  const registration = await navigator.serviceWorker.getRegistration();
  return registration?.waiting != null || registration?.installing != null;
}
