/**
 * Builds the page into `web/dist`, or the extension into `web/dist-extension`, with a model of `tacit export`.
 *
 *     npm run build -- EXPORT [FOLDER] [--server https://HOST]... [--publisher KEY] [--extension]
 */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { brotliCompressSync, constants } from "node:zlib";

import { build } from "esbuild";

import { digestOf, writtenBundle } from "./core/bundle.ts";
import { toHex } from "./core/bytes.ts";
import { CannotWork, saidBy } from "./core/errors.ts";
import { readSigningKey } from "./core/signing.ts";
import { serverAddress } from "./core/transport.ts";
import { contentPolicy, hostHeaders } from "./page/content_policy.ts";
import { BUNDLE } from "./page/guarded.ts";
import { nextWordsOf } from "./train/next_words.ts";
import { stepperOf } from "./train/stepper.ts";

const MODEL = ["manifest.json", "step.onnx", "train.onnx", "vocabulary.json"];
const STATIC = ["page.css", "icon.svg"];
const HEADERS = "_headers"; // as some static hosts read them; no part of the bundle

const shared = { bundle: true, minify: true, format: "esm", target: "es2023", logLevel: "error", legalComments: "none" } as const;

export interface Choices {
  /** Servers that the page may speak with; none: the one that serves it. */
  readonly servers?: readonly string[];
  /** The public key whose log has to show a bundle before the page takes it; left out, the page takes any. */
  readonly publisher?: string;
  /** Whether it is an extension of Chromium (Manifest V3): all of its code comes in its package. */
  readonly extension?: boolean;
}

/**
 * Writes the page to `folder`, whole or not at all, with the model of `model`. `web` is the folder of this file. The
 * digest of the bundle.
 *
 * Throws: CannotWork for a model that is no export or that no page can read, a folder with files of another kind, a
 * server that is neither https nor on this machine, and an extension without one; Refused for a key that is none.
 */
export async function built(web: string, model: string, folder: string, choices: Choices = {}): Promise<string> {
  await refuse(model, folder);
  const servers = (choices.servers ?? []).map((each) => serverAddress(each).origin);
  const publisher = choices.publisher === undefined ? null : toHex(readSigningKey(choices.publisher));
  const manifest = choices.extension === true ? await extensionManifest(web, servers) : null;
  const page = await readFile(join(web, "page", "index.html"), "utf8");
  const out = `${folder}.part`;
  await rm(out, { recursive: true, force: true });
  await mkdir(join(out, "model"), { recursive: true });
  await build({
    ...shared,
    entryPoints: ["page/page.ts", "answers/report_worker.ts"].map((each) => join(web, each)),
    entryNames: "[name]",
    chunkNames: "part-[hash]",
    splitting: true,
    outdir: out,
    define: { BUILT: JSON.stringify({ servers, publisher, extension: manifest?.version ?? null }) },
  });
  await Promise.all([
    ...STATIC.map((each) => cp(join(web, "page", each), join(out, each))),
    cp(join(web, "lattice", "lattice.wasm"), join(out, "lattice.wasm")),
    ...MODEL.map((each) => cp(join(model, each), join(out, "model", each))),
  ]);
  if (manifest === null) {
    const installable = [["app.webmanifest", await readFile(join(web, "page", "app.webmanifest"), "utf8")]] as const;
    await written(out, [...installable, ["index.html", withPolicy(page, servers)], ["sw.js", await guardOf(web, publisher)]]);
  } else {
    await build({ ...shared, entryPoints: [join(web, "extension", "background.ts")], outdir: out });
    const inside = without(page, '    <link rel="manifest" href="app.webmanifest">\n'); // the package is what is installed
    await written(out, [["index.html", inside], ["manifest.json", JSON.stringify(manifest, null, 1)]]);
  }
  const files = new Map(await Promise.all((await namesIn(out)).map(async (each) => [each, sha256(await readFile(join(out, each)))] as const)));
  const digest = await digestOf(files);
  await written(out, [[BUNDLE, writtenBundle({ digest, files, publisher })]]);
  if (manifest === null) await forHosts(web, out, servers);
  await rm(folder, { recursive: true, force: true });
  await rename(out, folder);
  return digest;
}

/** Throws: CannotWork where the model lacks a file or cannot be read, or the folder has files that no build made. */
async function refuse(model: string, folder: string): Promise<void> {
  const missing = MODEL.find((each) => !existsSync(join(model, each)));
  if (missing !== undefined) throw new CannotWork(`'${model}' has no ${missing}: give a folder that \`tacit export RUN --out FOLDER\` wrote.`);
  nextWordsOf(new Uint8Array(await readFile(join(model, "step.onnx"))));
  stepperOf(new Uint8Array(await readFile(join(model, "train.onnx"))));
  if (!existsSync(folder) || existsSync(join(folder, BUNDLE)) || (await readdir(folder)).length === 0) return;
  throw new CannotWork(`'${folder}' has files and no ${BUNDLE}, so no build made it, and it would be removed: name another folder.`);
}

/** What a host sends and the bundle does not have: files compressed, and headers. */
async function forHosts(web: string, out: string, servers: readonly string[]): Promise<void> {
  await Promise.all((await namesIn(out)).map((each) => compressed(join(out, each), web)));
  const headers = Object.entries(hostHeaders(servers)).map(([name, value]) => `  ${name}: ${value}\n`);
  await written(out, [[HEADERS, `/*\n${headers.join("")}`]]);
}

/** The manifest of the extension, with its policy of content. It asks for no permission: its server lists its origin. */
async function extensionManifest(web: string, servers: readonly string[]): Promise<{ readonly version: string }> {
  if (servers.length === 0) throw new CannotWork("an extension has no server of its own: say with --server which one it speaks with.");
  const manifest = JSON.parse(await readFile(join(web, "extension", "manifest.json"), "utf8")) as { readonly version: string };
  return { ...manifest, content_security_policy: { extension_pages: contentPolicy(servers) } } as typeof manifest;
}

function written(out: string, files: readonly (readonly [string, string])[]): Promise<unknown> {
  return Promise.all(files.map(([name, text]) => writeFile(join(out, name), text)));
}

/** Throws: Error where the page does not have the line. */
function without(page: string, line: string): string {
  if (!page.includes(line)) throw new Error(`index.html has no line ${line.trim()}.`);
  return page.replace(line, "");
}

/** The service worker: the same for every bundle of a publisher. It knows itself by the digest of the rest of its text. */
async function guardOf(web: string, publisher: string | null): Promise<string> {
  const define = { BUILT: JSON.stringify({ servers: [], publisher, extension: null }), GUARD_ID: '"@guard@"' };
  const made = await build({ ...shared, entryPoints: [join(web, "page", "sw.ts")], format: "iife", define, write: false });
  const text = made.outputFiles[0]?.text ?? "";
  return text.replace("@guard@", sha256(text));
}

/** The page with its policy of content in it, for hosts that send no headers. It binds the document, not its workers. */
function withPolicy(page: string, servers: readonly string[]): string {
  const first = '<meta charset="utf-8">'; // what comes before the policy is not bound by it
  if (!page.includes(first)) throw new Error(`index.html does not begin with ${first}.`);
  return page.replace(first, `${first}\n    <meta http-equiv="Content-Security-Policy" content="${contentPolicy(servers)}">`);
}

/** Beside a file the same, compressed, where that is shorter: a server sends it to browsers that say they read it. */
async function compressed(path: string, web: string): Promise<void> {
  const content = await readFile(path);
  const kept = join(web, "node_modules", ".cache", `${sha256(content)}.br`); // the runtime takes long, and is always the same
  let shorter: Uint8Array;
  try {
    shorter = await readFile(kept);
  } catch {
    shorter = brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: content.length } });
    await mkdir(join(web, "node_modules", ".cache"), { recursive: true });
    const part = `${kept}.${process.pid}`; // a build that is killed leaves no half of one
    await writeFile(part, shorter);
    await rename(part, kept);
  }
  if (shorter.length < content.length) await writeFile(`${path}.br`, shorter);
}

async function namesIn(folder: string): Promise<readonly string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  return found.filter((each) => each.isFile()).map((each) => relative(folder, join(each.parentPath, each.name))).sort();
}

function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { server: { type: "string", multiple: true, default: [] }, publisher: { type: "string" }, extension: { type: "boolean", default: false } },
  });
  const { server: servers, publisher, extension } = values;
  const [model, out] = positionals;
  if (model === undefined) throw new CannotWork("say which model: npm run build -- FOLDER, as `tacit export` wrote it.");
  const [web, here] = [process.cwd(), process.env["INIT_CWD"] ?? process.cwd()]; // npm works in web/; paths are from where its user stands
  const folder = out === undefined ? join(web, extension ? "dist-extension" : "dist") : resolve(here, out);
  process.stdout.write(`${await built(web, resolve(here, model), folder, { servers, extension, ...(publisher === undefined ? {} : { publisher }) })}\n`);
}

if (basename(process.argv[1] ?? "").startsWith("build")) {
  main().catch((thrown: unknown) => {
    process.stderr.write(`error: ${saidBy(thrown)}\n`);
    process.exitCode = 2;
  });
}
