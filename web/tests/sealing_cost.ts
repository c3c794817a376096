/**
 * CPU-seconds of one thread that encoding and sealing take, each a JSON line: the first, and the median of more.
 *
 * npx esbuild tests/sealing_cost.ts --bundle --platform=node --format=esm --outfile=COST.mjs
 * node COST.mjs lattice/lattice.wasm
 *
 * A number behind that: one report of so many numbers alone, in a process that has done nothing else.
 */

import { readFileSync } from "node:fs";
import { cpus } from "node:os";
import { gzipSync } from "node:zlib";

import { encode } from "../core/encoding.ts";
import { machineOf } from "../core/seal/machine.ts";
import { PUBLISHED } from "../core/seal/parameters.ts";
import { sealedReport } from "../core/seal/report.ts";
import { ringOf } from "../core/seal/ring.ts";
import { sealedRound } from "../core/seal/round.ts";
import { settings } from "./rounds.ts";

const bytes = readFileSync(process.argv[2] ?? "lattice/lattice.wasm");
const compiled = new WebAssembly.Module(bytes);

async function cost(turns: number, work: () => unknown): Promise<{ first: number; median: number }> {
  const taken: number[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    taken.push((user + system) / 1e6);
  }
  const first = taken.shift()!;
  return { first, median: taken.sort((one, other) => one - other)[taken.length >> 1]! };
}

function line(what: string, said: object): void {
  console.log(JSON.stringify({ what, ...said }));
}

async function sealing(dimensions: readonly number[]): Promise<void> {
  for (const dimension of dimensions) {
    const round = await sealedRound(
      await settings({ set: "willow-16384", dimension, largest: 72, goal: 100, most: 6500 }),
    );
    const vector = Uint32Array.from({ length: dimension }, (_, place) => place % 73);
    let size = 0;
    const taken = await cost(12, async () => {
      size = (await sealedReport(compiled, round, vector)).length;
    });
    line("sealed report", { numbers: dimension, bytes: size, ...taken });
  }
}

async function everything(): Promise<void> {
  const parameters = PUBLISHED["willow-16384"]!;
  const machine = await machineOf(compiled);
  const ring = ringOf(machine, parameters);
  const polynomial = ring.polynomial();
  const all = await cost(101, () => ring.transform(polynomial));
  line("transform, N = 16384, one prime of four", { first: all.first / 4, median: all.median / 4 });
  const small = machine.room(8 * ring.degree);
  const drawn = crypto.getRandomValues(new Uint8Array(65536));
  const words = new Uint8Array(16 * ring.degree).map((_, place) => drawn[place % drawn.length]!);
  line("16,384 discrete Gaussians", await cost(41, () => ring.sample(words, small)));

  // (numbers, the scale of tacit's encoding_within(parameters, clip_norm=1, report_goal=6500))
  for (const [numbers, scale, dimension] of [
    [144_528, 1382.8892028670705, 147_456],
    [661_000, 2919.013097799345, 671_744],
    [2_380_000, 5520.233370646048, 2_424_832],
  ] as const) {
    const update = Float32Array.from({ length: numbers }, (_, place) => Math.sin(place));
    const encoding = { parameters: numbers, dimension, clip_norm: 1, scale, report_goal: 6500, sigmas: 10, margin: 0 };
    const seed = new Uint8Array(32);
    line("encode", { numbers, ...(await cost(5, () => encode(compiled, update, encoding, seed, seed))) });
  }

  await sealing([144_528, 661_000, 2_424_832]);
}

line("processor", {
  model: cpus()[0]?.model,
  node: process.version,
  wasm: bytes.length,
  gzip: gzipSync(bytes, { level: 9 }).length,
});

await (process.argv[3] === undefined ? everything() : sealing([Number(process.argv[3])]));
