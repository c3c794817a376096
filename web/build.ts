/** Builds the page into `web/dist`: node with a model's folder, as `tacit export` wrote it. */

import { createHash } from "node:crypto";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

import { build, type Plugin } from "esbuild";

const MODEL = ["manifest.json", "step.onnx", "train.onnx", "vocabulary.json"];
const RUNTIME = ["ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"];
const STATIC = ["index.html", "page.css", "icon.svg", "app.webmanifest"];

/** The runtime stands beside the page, for both workers and never in the page's own code. */
const apart: Plugin = {
  name: "runtime apart",
  setup: (builder) => builder.onResolve({ filter: /^onnxruntime-web\/wasm$/ }, () => ({ path: `./${RUNTIME[0]}`, external: true })),
};

/** Writes the page to `out`, with the model of `model`. `web` is the folder of this file. The digest of the bundle. */
export async function built(web: string, model: string, out: string): Promise<string> {
  await rm(out, { recursive: true, force: true });
  await mkdir(join(out, "model"), { recursive: true });
  const shared = { bundle: true, minify: true, format: "esm", target: "es2023", logLevel: "error", legalComments: "none" } as const;
  await build({
    ...shared,
    entryPoints: ["page/page.ts", "train/reader_worker.ts", "answers/report_worker.ts"].map((each) => join(web, each)),
    entryNames: "[name]",
    outdir: out,
    plugins: [apart],
  });
  const runtime = join(web, "node_modules", "onnxruntime-web", "dist");
  await Promise.all([
    ...STATIC.map((each) => cp(join(web, "page", each), join(out, each))),
    ...RUNTIME.map((each) => cp(join(runtime, each), join(out, each))),
    cp(join(web, "lattice", "lattice.wasm"), join(out, "lattice.wasm")),
    ...MODEL.map((each) => cp(join(model, each), join(out, "model", each))),
  ]);
  const files = Object.fromEntries(await Promise.all((await namesIn(out)).map(async (each) => [each, sha256(await readFile(join(out, each)))] as const)));
  const digest = sha256(JSON.stringify(files));
  await writeFile(join(out, "bundle.json"), JSON.stringify({ digest, files }, null, 1));
  await build({
    ...shared,
    entryPoints: [join(web, "page", "sw.ts")],
    format: "iife",
    outfile: join(out, "sw.js"),
    define: { BUNDLE: JSON.stringify({ digest, files: { ...files, "bundle.json": sha256(await readFile(join(out, "bundle.json"))) } }) },
  });
  await Promise.all((await namesIn(out)).map((each) => compressed(join(out, each), web)));
  return digest;
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
  const [model, out = "dist"] = process.argv.slice(2);
  if (model === undefined) throw new Error("say which model: npm run build -- FOLDER, as `tacit export` wrote it.");
  process.stdout.write(`${await built(process.cwd(), model, out)}\n`);
}
