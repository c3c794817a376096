/** What a build refuses before it writes: nobody's files are removed for a page. */

import { cp, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, expect, test } from "vitest";

import { built } from "../build.ts";

const web = fileURLToPath(new URL("..", import.meta.url));
const model = join(web, "tests", "fixtures", "training");
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tacit-build-"));
  await writeFile(join(folder, "letter.txt"), "dear diary");
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test("a folder with files that no build made is left as it is", async () => {
  await expect(built(web, model, folder)).rejects.toThrow("has files and no bundle.json, so no build made it");
  expect(await readdir(folder)).toEqual(["letter.txt"]);
});

test("a model that is no export is said by what it lacks", async () => {
  await expect(built(web, folder, join(folder, "page"))).rejects.toThrow("has no manifest.json: give a folder that `tacit export RUN --out FOLDER` wrote.");
  expect(await readdir(folder)).toEqual(["letter.txt"]);
});

test("a model of 8 bits, which no page reads, is refused with the way out", async () => {
  const smaller = await mkdtemp(join(tmpdir(), "tacit-smaller-"));
  await cp(model, smaller, { recursive: true });
  await cp(join(web, "tests", "fixtures", "graphs", "eight_bits.onnx"), join(smaller, "step.onnx"));
  await expect(built(web, smaller, join(folder, "page"))).rejects.toThrow("export the model without --quantize");
  expect(await readdir(folder)).toEqual(["letter.txt"]);
  await rm(smaller, { recursive: true });
});
