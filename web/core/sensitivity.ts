/** The most that one device can cost a run: the worst rounds that separation and participations allow it. */

import { Refused } from "./errors.ts";
import { gram, type Matrix, type Strategy, type Toeplitz, type Trees } from "./strategy.ts";

/** Which rounds one device may take part in: at least so far apart, at most so many. */
export interface Participation {
  readonly rounds: number;
  readonly minSeparation: number;
  readonly maxParticipations: number;
}

export interface Squared {
  /** The square of the sensitivity, in clip norms, or a bound of it. */
  readonly squared: number;
  readonly exact: boolean;
}

const MOST_PATTERNS = 200_000; // that are tried one by one
const MOST_COMPARED = 30_000_000; // choices with others, in the search over trees: a second or two

/** As the plan has it; without a limit of participations as many as fit. */
export function participation(rounds: number, minSeparation: number, most: number | null): Participation {
  const fit = Math.ceil(rounds / minSeparation);
  return { rounds, minSeparation, maxParticipations: Math.min(most ?? fit, fit) };
}

/** The worst case of a strategy. Throws: Refused, in words, where it is not computed here. */
export function sensitivitySquared(strategy: Strategy, limits: Participation): Squared {
  if (strategy.kind === "trees") return { squared: ofTrees(strategy, limits), exact: true };
  if (strategy.kind === "toeplitz") return ofToeplitz(strategy, limits);
  return ofMatrix(strategy, limits);
}

/**
 * Of a column that falls and has no negative number: the first rounds, as near as allowed.
 *
 * Source: arXiv:2405.13763, Theorem 2.
 *
 * Of another column: a bound, that of the smallest falling column above it.
 */
function ofToeplitz({ column }: Toeplitz, { rounds, minSeparation, maxParticipations }: Participation): Squared {
  const above = column.map(Math.abs);
  for (let at = rounds - 2; at >= 0; at--) above[at] = Math.max(above[at] as number, above[at + 1] as number);
  const sums = new Float64Array(rounds);
  for (let came = 0; came < maxParticipations; came++) {
    const first = came * minSeparation;
    for (let at = first; at < rounds; at++) sums[at] = (sums[at] as number) + (above[at - first] as number);
  }
  return {
    squared: sums.reduce((sum, each) => sum + each * each, 0),
    exact: above.every((each, at) => each === column[at]),
  };
}

/** What some participations in a node give: how many, the sum of squares over its nodes, the round of the last. */
interface Choice {
  readonly count: number;
  readonly squares: number;
  readonly last: number;
}

/**
 * Of trees, exactly: every node adds the square of the participations below it.
 *
 * A search from left to right. Of choices with equal counts and squares the one that ends first leaves the most to what
 * follows; so only those are kept that no other beats in all three.
 */
function ofTrees({ rounds, starts }: Trees, limits: Participation): number {
  const { minSeparation, maxParticipations } = limits;
  const unlimited = maxParticipations >= Math.ceil(rounds / minSeparation);
  const known = new Map<number, readonly Choice[]>();
  let compared = 0;

  function kept(choices: readonly Choice[]): readonly Choice[] {
    const sorted = choices.toSorted((a, b) => b.squares - a.squares || b.count - a.count || a.last - b.last);
    const found: Choice[] = [];
    for (const each of sorted) {
      const beaten = (other: Choice): boolean =>
        other.last <= each.last && (unlimited ? other.count >= each.count : other.count === each.count);
      compared += found.length + 1;
      if (compared > MOST_COMPARED) {
        throw new Refused(
          "the cost of a tree with so many rounds and participations is more than this device computes.",
        );
      }
      if (!found.some(beaten)) found.push(each);
    }
    return found;
  }

  /** Non-empty choices in a complete node of 2^level rounds, none before its round `first`. */
  function within(level: number, first: number): readonly Choice[] {
    const size = 2 ** level;
    if (first >= size) return [];
    if (size <= minSeparation || maxParticipations === 1) return [{ count: 1, squares: level + 1, last: first }];
    const name = level * 2 ** 40 + first;
    const before = known.get(name);
    if (before !== undefined) return before;
    const half = size / 2;
    const both: Choice[] = [];
    for (const right of within(level - 1, Math.max(0, first - half))) both.push({ ...right, last: right.last + half });
    for (const left of within(level - 1, first)) {
      both.push(left);
      for (const right of within(level - 1, Math.max(0, left.last + minSeparation - half))) {
        const count = left.count + right.count;
        if (count <= maxParticipations)
          both.push({ count, squares: left.squares + right.squares, last: right.last + half });
      }
    }
    const found = kept(both.map((each) => ({ ...each, squares: each.squares + each.count ** 2 })));
    known.set(name, found);
    return found;
  }

  let choices: readonly Choice[] = [{ count: 0, squares: 0, last: -minSeparation }];
  for (const [start, level] of completeNodes(rounds, starts)) {
    const more = choices.flatMap((each) =>
      within(level, Math.max(0, each.last + minSeparation - start))
        .filter((next) => each.count + next.count <= maxParticipations)
        .map((next) => ({
          count: each.count + next.count,
          squares: each.squares + next.squares,
          last: start + next.last,
        })),
    );
    choices = kept([...choices, ...more]);
  }
  return choices.reduce((most, each) => Math.max(most, each.squares), 0);
}

/** The largest complete nodes that tile each tree, from left to right: where one begins, and its level. */
function completeNodes(rounds: number, starts: readonly number[]): (readonly [number, number])[] {
  const found: (readonly [number, number])[] = [];
  for (const [tree, start] of starts.entries()) {
    const end = starts[tree + 1] ?? rounds;
    for (let from = start; from < end; ) {
      const level = Math.floor(Math.log2(end - from));
      found.push([from, level]);
      from += 2 ** level;
    }
  }
  return found;
}

/** Of a matrix in numbers: exactly where only neighbours overlap; else by trying all patterns, where they are few. */
function ofMatrix(matrix: Matrix, limits: Participation): Squared {
  const { minSeparation, maxParticipations } = limits;
  if (maxParticipations === 1 || matrix.bands <= 2 * minSeparation) {
    return { squared: ofNeighbours(matrix, limits), exact: true };
  }
  refuseManyPatterns(limits);
  const { rounds } = matrix;
  const pairs = Float64Array.from({ length: rounds * rounds }, (_, at) =>
    gram(matrix, Math.floor(at / rounds), at % rounds),
  );
  let most = 0;
  const came: number[] = [];
  const go = (from: number, spent: number): void => {
    most = Math.max(most, spent);
    if (came.length === maxParticipations) return;
    for (let round = from; round < rounds; round++) {
      const overlaps = came.reduce((sum, each) => sum + 2 * Math.abs(pairs[each * rounds + round] as number), 0);
      came.push(round);
      go(round + minSeparation, spent + overlaps + (pairs[round * rounds + round] as number));
      came.pop();
    }
  };
  go(0, 0);
  return { squared: most, exact: pairs.every((each) => each >= 0) };
}

/** A dynamic program over the last round: with at most 2b bands no round overlaps the one after the next. */
function ofNeighbours(matrix: Matrix, { rounds, minSeparation, maxParticipations }: Participation): number {
  const alone = Float64Array.from({ length: rounds }, (_, at) => gram(matrix, at, at));
  const overlaps = Math.max(0, matrix.bands - minSeparation); // gaps from the separation on at which two columns meet
  const pairs = new Float64Array(rounds * overlaps);
  for (let at = 0; at < rounds; at++) {
    for (let more = 0; more < overlaps && at + minSeparation + more < rounds; more++) {
      pairs[at * overlaps + more] = 2 * Math.abs(gram(matrix, at, at + minSeparation + more));
    }
  }
  let best = alone; // of so many participations, the last in that round
  let most = largest(best);
  for (let came = 2; came <= maxParticipations; came++) {
    const next = new Float64Array(rounds).fill(-Infinity);
    let before = -Infinity; // the best whose last round does not overlap this one
    for (let at = minSeparation; at < rounds; at++) {
      const apart = at - minSeparation - overlaps;
      if (apart >= 0) before = Math.max(before, best[apart] as number);
      let reached = before;
      for (let more = 0; more < overlaps && at - minSeparation - more >= 0; more++) {
        const last = at - minSeparation - more;
        reached = Math.max(reached, (best[last] as number) + (pairs[last * overlaps + more] as number));
      }
      next[at] = reached + (alone[at] as number);
    }
    best = next;
    most = Math.max(most, largest(best));
  }
  return most;
}

function largest(numbers: Float64Array): number {
  return numbers.reduce((most, each) => Math.max(most, each), -Infinity);
}

/** Throws: Refused where the patterns of participation are too many to try. It needs no matrix, only its sizes. */
export function refuseManyPatterns({ rounds, minSeparation, maxParticipations }: Participation): void {
  let ending = new Float64Array(rounds).fill(1); // patterns of so many participations, by their last round
  let patterns = rounds;
  for (let came = 2; came <= maxParticipations && patterns <= MOST_PATTERNS; came++) {
    const next = new Float64Array(rounds);
    let before = 0;
    for (let at = minSeparation; at < rounds; at++) {
      before += ending[at - minSeparation] as number;
      next[at] = before;
    }
    ending = next;
    patterns += ending.reduce((sum, each) => sum + each, 0);
  }
  if (patterns > MOST_PATTERNS) {
    throw new Refused(
      `the plan's matrix has more bands than twice the separation, ${minSeparation}, and so many rounds that ` +
        "this device cannot try all patterns.",
    );
  }
}
