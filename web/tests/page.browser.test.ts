/** The built page in Chromium, as its readers and the strict headers have it. Skipped where there is no Chromium. */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { built } from "../build.ts";
import { served, type Came, type Served } from "./served.ts";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const web = fileURLToPath(new URL("..", import.meta.url));
const VIEWS = ["type", "kept", "left", "rounds", "rules"] as const;
const TYPED = "one two three xylophone";
const SECRET = "xylophone"; // in no model and no page: where it leaves it was typed
const KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

interface Opened {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors that the page or its console spoke of. */
  readonly errors: string[];
  readonly requests: { readonly address: string; readonly body: string }[];
}

describe.skipIf(!existsSync(CHROMIUM))(`the page, by ${CHROMIUM} (skipped where it is not there)`, { timeout: 300_000 }, () => {
  let browser: Browser;
  let server: Served;
  let checkIns = 0;
  const asked = async ({ path }: Came): Promise<{ status: number; body: string } | null> => {
    if (path !== "/v1/check-in") return null;
    checkIns++;
    return { status: 200, body: JSON.stringify({ answer: "come_back", after_s: 3600, before_s: 7200 }) };
  };

  beforeAll(async () => {
    const out = join(tmpdir(), `tacit-page-${process.pid}`);
    await built(web, join(web, "tests", "fixtures", "training"), out);
    server = await served(out, asked);
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  }, 300_000);

  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  async function opened(width = 360, colorScheme: "light" | "dark" = "light", context?: BrowserContext): Promise<Opened> {
    const within = context ?? (await browser.newContext({ viewport: { width, height: 740 }, colorScheme, acceptDownloads: true }));
    const page = await within.newPage();
    const found: Opened = { page, context: within, errors: [], requests: [] };
    page.on("console", (said) => {
      if (said.type() === "error" || said.type() === "warning") found.errors.push(said.text());
    });
    page.on("pageerror", (thrown) => found.errors.push(thrown.message));
    within.on("request", (each) => found.requests.push({ address: each.url(), body: each.postData() ?? "" }));
    await page.goto(server.address);
    await page.waitForSelector("html[data-ready]");
    return found;
  }

  const suggested = (page: Page): Promise<string[]> => page.locator("#suggestions button").allTextContents();

  describe.each([360, 1200])("%i pixels wide", (width) => {
    test.each(["light", "dark"] as const)("every view, %s: no finding of axe, nothing beyond the edge", async (scheme) => {
      const { page, context, errors } = await opened(width, scheme);
      const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
      await page.fill("#message", TYPED);
      await page.click("#keep");
      await page.waitForFunction(() => document.querySelectorAll("#kept-list li").length === 1);
      for (const view of VIEWS) {
        await page.click(`nav a[href="#${view}"]`);
        await page.waitForSelector(`#view-${view}:not([hidden])`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        expect(wide, view).toBeLessThanOrEqual(0);
        await page.evaluate(axe); // by the debugger, which the page's headers do not bind
        const findings = await page.evaluate(async () => {
          const run = (globalThis as unknown as { axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe;
          return (await run.run()).violations.map((each) => `${each.id}: ${each.nodes[0]?.html}`);
        });
        expect(findings, view).toEqual([]);
      }
      expect(errors).toEqual([]);
      await context.close();
    });
  });

  test("words are suggested, taken and mended, and Delete puts back what was typed", async () => {
    const { page, context, errors } = await opened();
    await page.click("#message");
    await page.keyboard.type("one two th");
    await expect.poll(() => suggested(page)).toContain("three");
    await page.click('#suggestions button:text-is("three")');
    expect(await page.inputValue("#message")).toBe("one two three ");
    await page.keyboard.type("fvie");
    await expect.poll(() => page.locator("#suggestions button.will").allTextContents()).toEqual(["five"]);
    await page.click('#keys button[data-key="space"]');
    expect(await page.inputValue("#message")).toBe("one two three five ");
    expect(await page.textContent("#corrected")).toContain('"fvie" became "five"');
    await page.click('#keys button[data-key="delete"]');
    expect(await page.inputValue("#message")).toBe("one two three fvie ");
    expect(errors).toEqual([]);
    await context.close();
  });

  test("by the keyboard alone: type, keep, find it kept, delete it", async () => {
    const { page, context } = await opened();
    const focused = (): Promise<string> => page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent || "");
    const tabTo = async (wanted: string): Promise<void> => {
      for (let presses = 0; presses < 80 && (await focused()) !== wanted; presses++) await page.keyboard.press("Tab");
      expect(await focused()).toBe(wanted);
    };
    await tabTo("message");
    await page.keyboard.type("two three four");
    await tabTo("keep");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.textContent("#corrected")).toContain("Kept");
    await page.keyboard.press("Shift+Tab");
    await tabTo("Kept");
    await page.keyboard.press("Enter");
    await tabTo("Delete");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.textContent("#kept-count")).toBe("Nothing is kept.");
    await context.close();
  });

  test("opened by the name of its file it suggests, too", async () => {
    const { page, context, errors } = await opened();
    await page.goto(`${server.address}index.html`);
    await page.waitForSelector("html[data-ready]");
    await page.click("#message");
    await page.keyboard.type("one two th");
    await expect.poll(() => suggested(page)).toContain("three");
    expect(errors).toEqual([]);
    await context.close();
  });

  test("keys of the page alone can write a sentence", async () => {
    const { page, context } = await opened();
    for (const key of ["shift", "o", "n", "e", "space", "t", "w", "o", "."]) await page.click(`#keys button[data-key="${key}"]`);
    expect(await page.inputValue("#message")).toBe("One two.");
    await context.close();
  });

  test("nothing that was typed leaves: every request of a session is searched", async () => {
    const first = server.seen.length;
    const { page, context, requests, errors } = await opened();
    await page.fill("#message", TYPED);
    await page.click("#keep");
    await page.click('nav a[href="#rounds"]');
    const before = checkIns;
    await page.fill("#operator-key", KEY);
    await page.check("#first-time");
    await page.click("#join button");
    await expect.poll(() => checkIns).toBe(before + 1);
    await expect.poll(() => page.textContent("#turn")).toContain("nothing to do");
    await page.click("#turn-now");
    await expect.poll(() => checkIns).toBe(before + 2);
    await page.click('nav a[href="#rules"]');
    const [file] = await Promise.all([page.waitForEvent("download"), page.click("#export")]);
    expect(await readFile(await file.path(), "utf8")).toContain(SECRET); // it is in the file that its owner asked for
    expect(requests.length).toBeGreaterThan(8);
    expect(requests.filter((each) => JSON.stringify(each).includes(SECRET))).toEqual([]);
    expect(requests.filter((each) => !each.address.startsWith(server.address) && !each.address.startsWith("blob:"))).toEqual([]);
    const came = server.seen.slice(first);
    expect(came.length).toBeGreaterThan(8);
    expect(came.filter(({ path, headers, body }) => JSON.stringify([path, headers, body.toString("latin1")]).includes(SECRET))).toEqual([]);
    expect(came.filter(({ headers }) => headers.cookie !== undefined || headers.referer !== undefined)).toEqual([]);
    expect(errors).toEqual([]);
    await context.close();
  });

  test("where the operator itself serves the page, every view says that this is a demonstration", async () => {
    const { page, context } = await opened();
    for (const view of VIEWS) {
      await page.click(`nav a[href="#${view}"]`);
      await expect.poll(() => page.textContent("#source")).toBe("Demonstration: the operator serves this page");
      expect(await page.isVisible("#source")).toBe(true);
    }
    await context.close();
  });

  test("a browser that does not say it is new has no budget, and says why", async () => {
    const { page, context } = await opened();
    await page.click('nav a[href="#rounds"]');
    await page.fill("#operator-key", KEY);
    await page.click("#join button");
    await expect.poll(() => page.textContent("#budget")).toContain("0 of 4 left");
    await page.click('nav a[href="#left"]');
    expect(await page.textContent("#journal")).toContain("could not know what had been spent");
    await context.close();
  });

  test("a server that is neither https nor here, and a key that anybody can sign for, are refused in words", async () => {
    const { page, context } = await opened();
    await page.click('nav a[href="#rounds"]');
    const before = checkIns;
    for (const [server, key, said] of [
      ["http://example.org", KEY, "is not https"],
      [undefined, `01${"00".repeat(31)}`, "anybody could sign"],
    ] as const) {
      if (server !== undefined) await page.fill("#server", server);
      else await page.fill("#server", new URL(page.url()).origin);
      await page.fill("#operator-key", key);
      await page.click("#join button");
      await expect.poll(() => page.textContent("#failure")).toContain(said);
      expect(await page.isEnabled("#first-time")).toBe(true);
    }
    expect(checkIns).toBe(before);
    await context.close();
  });

  test("a paused device asks for nothing", async () => {
    const { page, context } = await opened();
    await page.click('nav a[href="#rounds"]');
    await page.fill("#operator-key", KEY);
    await page.check("#first-time");
    await page.click("#join button");
    await expect.poll(() => page.textContent("#turn")).toContain("nothing to do");
    await page.click("#pause");
    await expect.poll(() => page.textContent("#state")).toBe("paused");
    const before = checkIns;
    await page.click("#turn-now");
    await expect.poll(() => page.textContent("#turn")).toContain("paused");
    expect(checkIns).toBe(before);
    await context.close();
  });

  test("a rule that cannot be followed is not saved, and says which; a good one is", async () => {
    const { page, context } = await opened();
    await page.click('nav a[href="#rules"]');
    await page.fill("#rule-smallest_cohort", "-3");
    await page.click("#policy button[type=submit]");
    expect(await page.textContent("#policy-answer")).toMatch(/Not saved: .*smallest_cohort/);
    await page.fill("#rule-smallest_cohort", "500");
    await page.click("#policy button[type=submit]");
    await expect.poll(() => page.textContent("#policy-answer")).toContain("Saved");
    await page.reload();
    await page.waitForSelector("html[data-ready]");
    expect(await page.inputValue("#rule-smallest_cohort")).toBe("500");
    await context.close();
  });

  test("erasing leaves nothing, and is asked about first", async () => {
    const { page, context } = await opened();
    await page.fill("#message", TYPED);
    await page.click("#keep");
    await page.click('nav a[href="#rules"]');
    await page.click("#erase");
    await page.click('#sure button[value="no"]');
    expect(await page.textContent("#kept-count")).toContain("1 message");
    await page.click("#erase");
    await Promise.all([page.waitForEvent("load"), page.click("#sure-yes")]);
    await page.waitForSelector("html[data-ready]");
    expect(await page.textContent("#kept-count")).toBe("Nothing is kept.");
    await context.close();
  });

  test("from the second visit on it works without a network", async () => {
    const { page, context } = await opened();
    await page.evaluate(async () => void (await navigator.serviceWorker.ready));
    await context.setOffline(true);
    const { page: again, errors } = await opened(360, "light", context);
    await again.click("#message");
    await again.keyboard.type("one two th");
    await expect.poll(() => suggested(again)).toContain("three");
    expect(errors).toEqual([]);
    await page.close();
    await context.close();
  });
});
