/** The record on IndexedDB, in Chromium: after a kill, beside another tab, put back, and evicted. */

import { existsSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import type * as record from "../core/record.ts";
import type * as storage from "../page/storage.ts";
import { served, type Served } from "./served.ts";

type Tested = typeof storage & Pick<typeof record, "DeviceRecord">;
declare const tested: Tested; // in the page

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const web = fileURLToPath(new URL("..", import.meta.url));
const BUDGETS = { zcdp: 4, week: Infinity };

describe.skipIf(!existsSync(CHROMIUM))(`the record, by ${CHROMIUM} (skipped where it is not there)`, { timeout: 300_000 }, () => {
  let browser: Browser;
  let server: Served;
  let script: string;

  beforeAll(async () => {
    const contents = 'export * from "./page/storage.ts"; export { DeviceRecord } from "./core/record.ts";';
    const made = await build({ stdin: { contents, resolveDir: web, loader: "ts" }, bundle: true, write: false, format: "iife", globalName: "tested", logLevel: "error" });
    script = made.outputFiles[0]?.text ?? "";
    server = await served(join(web, "page"), undefined, {});
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  }, 300_000);

  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  async function tab(context: BrowserContext): Promise<Page> {
    const page = await context.newPage();
    await page.goto(`${server.address}app.webmanifest`); // a document of the origin without a program
    await page.evaluate(script.replace(/^\s*"use strict";\s*var tested/m, "globalThis.tested"));
    return page;
  }

  /** Opens the record, takes part in these rounds, and says what then counts. */
  const tookPart = (page: Page, rounds: readonly number[], firstTime = false): Promise<{ rounds: number[]; spent: number; losses: number }> =>
    page.evaluate(
      async ({ rounds, firstTime, budgets }) => {
        const kept = await tested.openStorage();
        const opened = await tested.DeviceRecord.open(kept.record, kept.journal, { firstTime, now: 1000, budgets });
        for (const round of rounds) {
          await opened.takePart({
            operator: "00", plan: "11", run: "run", population: "default", kind: "train", round, attempt: 0, task: `task ${round}`, series: null, opens: 0, deadline: 0, at: round, spent: 0.1 * (round + 1),
          });
        }
        return { rounds: opened.participations().map((each) => each.round), spent: opened.spent(1000).zcdp, losses: opened.losses().length };
      },
      { rounds, firstTime, budgets: BUDGETS },
    );

  /** The contents of a database, or puts them back. */
  const copied = (page: Page, name: string): Promise<unknown> =>
    page.evaluate(async (name) => {
      const done = <T>(request: IDBRequest<T>): Promise<T> => new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
      const database = await done(indexedDB.open(name));
      const all = await Promise.all(["entries", "about"].map(async (table) => {
        const store = database.transaction(table).objectStore(table);
        const [keys, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
        return keys.map((key, at) => [key, values[at]]);
      }));
      database.close();
      return all;
    }, name);
  const putBack = (page: Page, name: string, content: unknown): Promise<void> =>
    page.evaluate(async ({ name, content }) => {
      const database = await new Promise<IDBDatabase>((resolve, reject) => {
        const request = indexedDB.open(name);
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
      const writing = database.transaction(["entries", "about"], "readwrite");
      ["entries", "about"].forEach((table, at) => {
        writing.objectStore(table).clear();
        for (const [key, value] of (content as [IDBValidKey, unknown][][])[at] ?? []) writing.objectStore(table).put(value, key);
      });
      await new Promise((resolve) => (writing.oncomplete = resolve));
      database.close();
    }, { name, content });

  test("what was written is there in another tab, and nothing was lost", async () => {
    const context = await browser.newContext();
    expect(await tookPart(await tab(context), [0, 3], true)).toEqual({ rounds: [0, 3], spent: 0.4, losses: 0 });
    expect(await tookPart(await tab(context), [])).toEqual({ rounds: [0, 3], spent: 0.4, losses: 0 });
    await context.close();
  });

  test("a new browser that does not say it is new has spent its budget", async () => {
    const context = await browser.newContext();
    expect(await tookPart(await tab(context), [])).toEqual({ rounds: [], spent: 4, losses: 1 });
    await context.close();
  });

  test.each(["tacit-record", "tacit-journal"])("an older copy of %s alone loses nothing: the other has it", async (name) => {
    const context = await browser.newContext();
    const page = await tab(context);
    await tookPart(page, [0], true);
    const older = await copied(page, name);
    await tookPart(page, [5]);
    const again = await tab(context);
    await page.close();
    await putBack(again, name, older);
    expect(await tookPart(again, [])).toEqual({ rounds: [0, 5], spent: expect.closeTo(0.6, 9) as number, losses: 0 });
    await context.close();
  });

  test("older copies of both count as all of the budget, and so does their removal", async () => {
    for (const removed of [false, true]) {
      const context = await browser.newContext();
      const page = await tab(context);
      await tookPart(page, [0], true);
      const older = [await copied(page, "tacit-record"), await copied(page, "tacit-journal")];
      await tookPart(page, [5]);
      await page.close();
      const again = await tab(context);
      for (const [at, name] of ["tacit-record", "tacit-journal"].entries()) {
        if (removed) await again.evaluate((name) => new Promise((resolve) => (indexedDB.deleteDatabase(name).onsuccess = resolve)), name);
        else await putBack(again, name, older[at]);
      }
      const found = await tookPart(again, [], true); // whatever its owner says
      expect(found.losses).toBe(1);
      expect(found.spent).toBeGreaterThanOrEqual(4);
      await context.close();
    }
  });

  test("a copied profile has all that was recorded before; from then on each copy knows its own rounds alone, and is a device", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tacit-profile-"));
    const inProfile = async (name: string, rounds: readonly number[], firstTime = false): ReturnType<typeof tookPart> => {
      const context = await chromium.launchPersistentContext(join(folder, name), { executablePath: CHROMIUM, args: ["--no-sandbox"] });
      try {
        return await tookPart(await tab(context), rounds, firstTime);
      } finally {
        await context.close();
      }
    };
    await inProfile("first", [0], true);
    await cp(join(folder, "first"), join(folder, "copy"), { recursive: true });
    expect(await inProfile("copy", [], true)).toEqual({ rounds: [0], spent: 0.1, losses: 0 }); // nothing in it tells of the copying
    expect(await inProfile("first", [5])).toEqual({ rounds: [0, 5], spent: expect.closeTo(0.6, 9) as number, losses: 0 });
    expect(await inProfile("copy", [7])).toEqual({ rounds: [0, 7], spent: expect.closeTo(0.8, 9) as number, losses: 0 });
    expect((await inProfile("first", [])).rounds).toEqual([0, 5]);
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  test("of two tabs one has the turn, and a record that another tab wrote to is not written over", async () => {
    const context = await browser.newContext();
    const [first, second] = [await tab(context), await tab(context)];
    await first.evaluate(
      () => new Promise<void>((held) => {
        void tested.underLock(() => new Promise<void>((resolve) => {
          Object.assign(globalThis, { free: resolve });
          held();
        }));
      }),
    );
    expect(await second.evaluate(() => tested.underLock(async () => "mine"))).toBe(null);
    await first.evaluate(() => (globalThis as unknown as { free(): void }).free());
    expect(await second.evaluate(() => tested.underLock(async () => "mine"))).toBe("mine");
    const written = (page: Page): Promise<string> =>
      page.evaluate(async () => {
        const kept = await tested.openStorage();
        return kept.record.write(new Map([["key", "value"]]), 1).then(() => "written", (thrown: Error) => thrown.message);
      });
    expect(await written(first)).toBe("written");
    expect(await written(second)).toMatch(/another tab wrote/);
    await context.close();
  });

  test("after a kill of the browser everything that was acknowledged is there", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tacit-killed-"));
    const acknowledged: number[] = [];
    for (let start = 0; start < 3; start++) {
      const context = await chromium.launchPersistentContext(folder, { executablePath: CHROMIUM, args: ["--no-sandbox"] });
      const page = await tab(context);
      await page.exposeFunction("acknowledge", (round: number) => acknowledged.push(round));
      const found = await tookPart(page, [], start === 0);
      expect(found.losses).toBe(0);
      for (const round of acknowledged) expect(found.rounds).toContain(round);
      const running = page.evaluate(async ({ start, budgets }) => {
        const kept = await tested.openStorage();
        const opened = await tested.DeviceRecord.open(kept.record, kept.journal, { firstTime: false, now: 1000, budgets });
        for (let round = 1000 * start; ; round++) {
          await opened.takePart({
            operator: "00", plan: "11", run: "run", population: "default", kind: "train", round, attempt: 0, task: `task ${round}`, series: null, opens: 0, deadline: 0, at: round, spent: 0.1,
          });
          await (globalThis as unknown as { acknowledge(round: number): Promise<void> }).acknowledge(round);
        }
      }, { start, budgets: BUDGETS });
      running.catch(() => {}); // it ends with the browser
      await expect.poll(() => acknowledged.length, { timeout: 60_000 }).toBeGreaterThan(7 * (start + 1)); // however slow the disk is
      const session = await context.browser()?.newBrowserCDPSession();
      const told = (await session?.send("SystemInfo.getProcessInfo")) as { processInfo: { type: string; id: number }[] } | undefined;
      const pid = told?.processInfo.find((each) => each.type === "browser")?.id;
      expect(pid).toBeGreaterThan(1);
      process.kill(pid as number, "SIGKILL");
      await new Promise((resolve) => setTimeout(resolve, 500));
      await context.close().catch(() => {});
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
});
