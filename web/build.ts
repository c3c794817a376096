/**
 * Builds the page into `web/dist`: node with a model's folder, as `tacit export` wrote it.
 *
 *     npm run build -- EXPORT [FOLDER] [--server https://HOST]... [--publisher KEY]
 */

import { createHash } from "node:crypto";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { parseArgs } from "node:util";
import { brotliCompressSync, constants } from "node:zlib";

import { build, type Plugin } from "esbuild";

import { digestOf, writtenBundle } from "./core/bundle.ts";
import { toHex } from "./core/bytes.ts";
import { readSigningKey } from "./core/signing.ts";
import { serverAddress } from "./core/transport.ts";
import { contentPolicy, hostHeaders } from "./page/content_policy.ts";

const MODEL = ["manifest.json", "step.onnx", "train.onnx", "vocabulary.json"];
const RUNTIME = ["ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"];
const STATIC = ["page.css", "icon.svg", "app.webmanifest"];
const HEADERS = "_headers"; // as some static hosts read them; no part of the bundle

const shared = { bundle: true, minify: true, format: "esm", target: "es2023", logLevel: "error", legalComments: "none" } as const;

export interface Choices {
  /** Servers that the page may speak with; none: the one that serves it. */
  readonly servers?: readonly string[];
  /** The public key whose log has to show a bundle before the page takes it; left out, the page takes any. */
  readonly publisher?: string;
}

/** The runtime stands beside the page, for both workers and never in the page's own code. */
const apart: Plugin = {
  name: "runtime apart",
  setup: (builder) => builder.onResolve({ filter: /^onnxruntime-web\/wasm$/ }, () => ({ path: `./${RUNTIME[0]}`, external: true })),
};

/**
 * Writes the page to `out`, with the model of `model`. `web` is the folder of this file. The digest of the bundle.
 *
 * Throws: CannotWork for a server that is neither https nor on this machine; Refused for a key that is none.
 */
export async function built(web: string, model: string, out: string, choices: Choices = {}): Promise<string> {
  const servers = (choices.servers ?? []).map((each) => serverAddress(each).origin);
  const publisher = choices.publisher === undefined ? null : toHex(readSigningKey(choices.publisher));
  const define = { BUILT: JSON.stringify({ servers, publisher }) };
  await rm(out, { recursive: true, force: true });
  await mkdir(join(out, "model"), { recursive: true });
  await build({
    ...shared,
    entryPoints: ["page/page.ts", "train/reader_worker.ts", "train/trainer_worker.ts"].map((each) => join(web, each)),
    entryNames: "[name]",
    chunkNames: "part-[hash]",
    splitting: true,
    outdir: out,
    plugins: [apart],
    define,
  });
  const runtime = join(web, "node_modules", "onnxruntime-web", "dist");
  await Promise.all([
    writeFile(join(out, "index.html"), withPolicy(await readFile(join(web, "page", "index.html"), "utf8"), servers)),
    ...STATIC.map((each) => cp(join(web, "page", each), join(out, each))),
    ...RUNTIME.map((each) => cp(join(runtime, each), join(out, each))),
    cp(join(web, "lattice", "lattice.wasm"), join(out, "lattice.wasm")),
    ...MODEL.map((each) => cp(join(model, each), join(out, "model", each))),
  ]);
  await writeFile(join(out, "sw.js"), await guardOf(web, publisher));
  const files = new Map(await Promise.all((await namesIn(out)).map(async (each) => [each, sha256(await readFile(join(out, each)))] as const)));
  const digest = await digestOf(files);
  await writeFile(join(out, "bundle.json"), writtenBundle({ digest, files, publisher }));
  await Promise.all((await namesIn(out)).map((each) => compressed(join(out, each), web)));
  const headers = Object.entries(hostHeaders(servers)).map(([name, value]) => `  ${name}: ${value}\n`);
  await writeFile(join(out, HEADERS), `/*\n${headers.join("")}`);
  return digest;
}

/** The service worker: the same for every bundle of a publisher. It knows itself by the digest of the rest of its text. */
async function guardOf(web: string, publisher: string | null): Promise<string> {
  const define = { BUILT: JSON.stringify({ servers: [], publisher }), GUARD_ID: '"@guard@"' };
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
    await writeFile(kept, shorter);
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

if (basename(process.argv[1] ?? "").startsWith("build")) {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { server: { type: "string", multiple: true, default: [] }, publisher: { type: "string" } } });
  const [model, out = "dist"] = positionals;
  if (model === undefined) throw new Error("say which model: npm run build -- FOLDER, as `tacit export` wrote it.");
  process.stdout.write(`${await built(process.cwd(), model, out, { servers: values.server, ...(values.publisher === undefined ? {} : { publisher: values.publisher }) })}\n`);
}
