/** The extension in Chromium: its page loads from the package alone, types, and takes part at a real `tacit serve`. */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium, type BrowserContext, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { built } from "../build.ts";
import { CannotWork } from "../core/errors.ts";
import { PYTHON, realServer, turnOf, type RealServer } from "./real_server.ts";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const WAITS = { timeout: 180_000 }; // ms, on a busy machine
const web = fileURLToPath(new URL("..", import.meta.url));
const model = join(web, "tests", "fixtures", "training");

/** The identifier of an unpacked extension: of its folder's path, in letters from a to p. */
function identifierOf(folder: string): string {
  const digits = createHash("sha256").update(folder).digest("hex").slice(0, 32);
  return Array.from(digits, (each) => String.fromCharCode(97 + Number.parseInt(each, 16))).join("");
}

function withExtension(profile: string, folder: string): Promise<BrowserContext> {
  return chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    headless: false, // the older way of being headless has no extensions
    args: ["--headless=new", "--no-sandbox", `--disable-extensions-except=${folder}`, `--load-extension=${folder}`],
    ignoreDefaultArgs: ["--disable-extensions"],
  });
}

interface Manifest {
  readonly version: string;
  readonly content_security_policy: { readonly extension_pages: string };
}

describe("the package", () => {
  test("asks for no permission, and lets no code in but its own", async () => {
    const out = await mkdtemp(join(tmpdir(), "tacit-package-"));
    const digest = await built(web, model, out, { servers: ["https://fl.example.org"], extension: true });
    const names = (await readdir(out, { recursive: true })).sort();
    expect(names).toContain("background.js");
    expect(names.filter((each) => each.startsWith("_") || each.endsWith(".br") || each === "sw.js")).toEqual([]);
    const manifest = JSON.parse(await readFile(join(out, "manifest.json"), "utf8")) as Manifest;
    expect(Object.keys(manifest).filter((each) => /permissions|externally|accessible|content_scripts|update_url/.test(each))).toEqual([]);
    const rules = new Map(manifest.content_security_policy.extension_pages.split("; ").map((each) => [each.split(" ")[0], each.split(" ").slice(1)]));
    expect(rules.get("default-src")).toEqual(["'none'"]);
    expect(rules.get("script-src")).toEqual(["'self'", "'wasm-unsafe-eval'"]);
    expect(rules.get("connect-src")).toEqual(["'self'", "https://fl.example.org"]);
    expect(JSON.parse(await readFile(join(out, "bundle.json"), "utf8"))).toMatchObject({ digest, files: { "manifest.json": expect.any(String) as string } });
    await rm(out, { recursive: true });
  });

  test("without a server to speak with there is none", async () => {
    await expect(built(web, model, join(tmpdir(), "tacit-no-package"), { extension: true })).rejects.toThrow(CannotWork);
  });
});

const missing = !existsSync(CHROMIUM) || PYTHON === "";
describe.skipIf(missing)(`the extension, by ${CHROMIUM} and a Python with tacit (in TACIT_PYTHON)`, { timeout: 600_000 }, () => {
  let folder: string;
  let out: string;
  let digest: string;
  let origin: string;
  let operator: RealServer;
  let context: BrowserContext;

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), "tacit-extension-")));
    out = join(folder, "package");
    await mkdir(out);
    origin = `chrome-extension://${identifierOf(out)}`;
    operator = await realServer(folder, [origin]);
    digest = await built(web, operator.phone, out, { servers: [operator.address], extension: true });
    context = await withExtension(join(folder, "profile"), out);
  }, 300_000);

  afterAll(async () => {
    await context?.close();
    await operator?.close();
    await rm(folder, { recursive: true, force: true });
  }, 300_000);

  test("it types, takes part in a round, and says what it is", async () => {
    const path = [join(web, "..", "src"), process.env["PYTHONPATH"] ?? ""].join(":");
    const key = join(folder, "served", "operator.key");
    execFileSync(PYTHON, ["-m", "tacit", "publish", out, "--operator-key", key], { env: { ...process.env, PYTHONPATH: path } });

    const asked: string[] = [];
    const errors: string[] = [];
    context.on("request", (each) => asked.push(each.url()));
    const page: Page = await context.newPage();
    page.on("console", (said) => {
      if (said.type() === "error" || said.type() === "warning") errors.push(said.text());
    });
    page.on("pageerror", (thrown) => errors.push(thrown.message));
    await page.goto(`${origin}/index.html`);
    await page.waitForSelector("html[data-ready]");
    const { version } = JSON.parse(await readFile(join(out, "manifest.json"), "utf8")) as Manifest;
    expect(await page.textContent("#source")).toBe(`Extension ${version}`);
    await page.fill("#message", "waa wab wa");
    await expect.poll(() => page.locator("#suggestions button").count(), WAITS).toBeGreaterThan(0);
    await page.click("#keep");
    await page.click('nav a[href="#rules"]');
    expect(await page.textContent("#bundle")).toContain(digest);
    expect(await page.textContent("#bundle")).toContain("not seen yet");
    await page.click("#policy summary");
    await page.fill("#policy-text", "send_after_s = 1\n");
    await page.click("#policy button[type=submit]");
    await expect.poll(() => page.textContent("#policy-answer"), WAITS).toContain("Saved");
    await page.click('nav a[href="#rounds"]');
    expect(await page.textContent("#served")).toContain(`${origin} (tacit serve --web-origin)`);
    await page.fill("#operator-key", operator.key);
    await page.check("#first-time");
    await page.click("#join button");
    await expect.poll(() => turnOf(page), WAITS).toContain("The device took part. The operator signed for the report.");
    expect(await operator.released).toEqual({ finished: true, complaints: [] });
    await expect.poll(() => page.textContent("#bundle"), WAITS).toMatch(/entry [12] of 2 of the operator's log/); // its plan came before, or after
    expect(asked.length).toBeGreaterThan(8);
    expect(asked.filter((each) => ![origin, operator.address].includes(new URL(each).origin) && !each.startsWith(`${origin}/`))).toEqual([]);
    expect(errors.filter((each) => !each.includes("net::ERR_CONNECTION"))).toEqual([]); // the server ends with its round
  });
});
