/** A page from another origin at a real `tacit serve --web-origin`: the listed one takes part, any other is refused and says so. */

import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { built } from "../build.ts";
import { PYTHON, realServer, turnOf, type RealServer } from "./real_server.ts";
import { served, type Served } from "./served.ts";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const WAITS = { timeout: 180_000 }; // ms, on a busy machine
const web = fileURLToPath(new URL("..", import.meta.url));
const missing = !existsSync(CHROMIUM) || PYTHON === "";

describe.skipIf(missing)(`a page elsewhere, by ${CHROMIUM} and a Python with tacit (in TACIT_PYTHON)`, { timeout: 600_000 }, () => {
  let [folder, out] = ["", ""];
  let browser: Browser;
  let listed: Served;
  let foreign: Served;
  let operator: RealServer;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tacit-elsewhere-"));
    out = join(folder, "dist");
    [listed, foreign] = await Promise.all([served(out), served(out)]);
    operator = await realServer(folder, [new URL(listed.address).origin]);
    await built(web, operator.phone, out, { servers: [operator.address] });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  }, 300_000);

  afterAll(async () => {
    await browser?.close();
    await Promise.all([listed, foreign, operator].map((each) => each?.close()));
    await rm(folder, { recursive: true, force: true });
  }, 300_000);

  /** A page that was told to take part, with what its console said. */
  async function joins(host: Served): Promise<{ readonly page: Page; readonly errors: readonly string[] }> {
    const page = await (await browser.newContext()).newPage();
    const errors: string[] = [];
    page.on("console", (said) => {
      if (said.type() === "error" || said.type() === "warning") errors.push(said.text());
    });
    page.on("pageerror", (thrown) => errors.push(thrown.message));
    await page.goto(host.address);
    await page.waitForSelector("html[data-ready]");
    await page.fill("#message", "waa wab wac");
    await page.click("#keep");
    await page.click('nav a[href="#rules"]');
    await page.click("#policy summary");
    await page.fill("#policy-text", "send_after_s = 1\n");
    await page.click("#policy button[type=submit]");
    await expect.poll(() => page.textContent("#policy-answer"), WAITS).toContain("Saved");
    await page.click('nav a[href="#rounds"]');
    expect(await page.inputValue("#server")).toBe(operator.address);
    await page.fill("#operator-key", operator.key);
    await page.check("#first-time");
    await page.click("#join button");
    return { page, errors };
  }

  test("an origin that is not listed is refused, takes no place, and is told what its operator has to say", async () => {
    const { page, errors } = await joins(foreign);
    await expect.poll(() => page.textContent("#turn"), WAITS).toContain("No answer came");
    expect(await page.textContent("#turn")).toContain(`pages of ${new URL(foreign.address).origin} be devices (tacit serve --web-origin)`);
    expect(errors.join()).toContain("CORS");
    await page.context().close();
  });

  test("the listed one takes part, and a page says who serves it in every view", async () => {
    const { page, errors } = await joins(listed);
    expect(await page.textContent("#source")).toBe(`Served by ${new URL(listed.address).host}`);
    await expect.poll(() => turnOf(page), WAITS).toContain("The device took part. The operator signed for the report.");
    expect(await operator.released).toEqual({ finished: true, complaints: [] });
    expect(errors.filter((each) => !each.includes("net::ERR_CONNECTION"))).toEqual([]); // the server ends with its round
    await page.context().close();
  });

  test("it speaks with the server that it was built for and with no other: neither its form nor its policy lets it", async () => {
    const page = await (await browser.newContext()).newPage();
    await page.goto(listed.address);
    await page.waitForSelector("html[data-ready]");
    await page.click('nav a[href="#rounds"]');
    await page.fill("#server", foreign.address);
    await page.fill("#operator-key", operator.key);
    await page.click("#join button");
    await expect.poll(() => page.textContent("#failure"), WAITS).toContain(`it was built for ${operator.address}`);
    const before = foreign.seen.length;
    expect(await page.evaluate((address) => fetch(address).then(() => "answered", String), foreign.address)).toContain("Failed to fetch");
    expect(foreign.seen.length).toBe(before);
    await page.context().close();
  });

  test("where a host sends no headers the page binds itself", async () => {
    const bare = await served(out, undefined, {});
    const page = await (await browser.newContext()).newPage();
    await page.goto(bare.address);
    await page.waitForSelector("html[data-ready]");
    const before = foreign.seen.length;
    expect(await page.evaluate((address) => fetch(address).then(() => "answered", String), foreign.address)).toContain("Failed to fetch");
    expect(foreign.seen.length).toBe(before);
    expect(await page.evaluate(() => {
      try {
        document.body.innerHTML = "<p>";
        return "written";
      } catch (thrown) {
        return String(thrown);
      }
    })).toContain("TrustedHTML");
    expect(await readFile(join(out, "index.html"), "utf8")).toContain(`connect-src 'self' ${operator.address};`);
    await page.context().close();
    await bare.close();
  });
});
