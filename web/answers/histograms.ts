/** A device in one cell of each histogram, or a randomised answer to one of them. */

import { Refused } from "../core/errors.ts";
import type { Draws } from "./draws.ts";
import { randomizerOf } from "./randomizers.ts";

/** What one histogram counts: slices times bins by their cuts, and a last cell for those who have no report. */
export interface Histogram {
  readonly slices: readonly number[];
  readonly bins: readonly number[];
}

/** How many cells it has. */
export function sizeOf({ slices, bins }: Histogram): number {
  return (slices.length + 1) * (bins.length + 1) + 1;
}

/** The cell of a device, "no report" where it has nothing to say (NaN). Below the first cut and from the last on is a bucket. */
export function cellOf(histogram: Histogram, slicedBy: number, value: number): number {
  if (Number.isNaN(slicedBy) || Number.isNaN(value)) return sizeOf(histogram) - 1;
  return bucketOf(histogram.slices, slicedBy) * (histogram.bins.length + 1) + bucketOf(histogram.bins, value);
}

function bucketOf(cuts: readonly number[], value: number): number {
  return cuts.filter((cut) => cut <= value).length;
}

/** Cuts that increase, each finite. Throws: Refused. */
export function checkedCuts(cuts: readonly number[], what: string): readonly number[] {
  const rise = cuts.every((each, place) => Number.isFinite(each) && (place === 0 || each > (cuts[place - 1] as number)));
  if (!rise) throw new Refused(`the cuts of ${what} do not increase.`);
  return cuts;
}

/** What a task says of its histograms. */
export interface Asked {
  readonly cells: readonly number[];
  readonly local_epsilon: number | null;
}

/** Throws: Refused where a task asks for other histograms than its plan, or hides answers by no epsilon. */
export function refuseOthers({ cells, local_epsilon }: Asked, histograms: readonly Histogram[]): void {
  if (cells.length !== histograms.length || histograms.some((each, place) => sizeOf(each) !== cells[place])) {
    throw new Refused("the task asks for other histograms than its plan.");
  }
  if (local_epsilon !== null) cells.forEach((each) => randomizerOf("subset-selection", each, local_epsilon));
}

/**
 * The report of a device in these cells (H,): one unit in one cell of each; or, where reports are randomised, a subset
 * of the cells of ONE histogram, drawn without looking at the answer, and a unit behind all cells for which one it is.
 */
export function counted({ cells, local_epsilon }: Asked, chosen: readonly number[], draws: Draws): Uint32Array {
  const starts = cells.map((_, place) => cells.slice(0, place).reduce((sum, each) => sum + each, 0));
  const all = cells.reduce((sum, each) => sum + each, 0);
  if (chosen.length !== cells.length || chosen.some((cell, place) => !(cell >= 0 && cell < (cells[place] as number)))) {
    throw new RangeError("a cell is in no histogram");
  }
  const words = new Uint32Array(all + (local_epsilon === null ? 0 : cells.length));
  if (local_epsilon === null) {
    chosen.forEach((cell, place) => (words[(starts[place] as number) + cell] = 1));
    return words;
  }
  const number = draws.below(cells.length);
  const [start, size] = [starts[number] as number, cells[number] as number];
  randomizerOf("subset-selection", size, local_epsilon).vote(chosen[number] as number, draws, words.subarray(start, start + size));
  words[all + number] = 1;
  return words;
}

/** "No report" in each. */
export function noReport({ cells }: Asked): readonly number[] {
  return cells.map((each) => each - 1);
}
