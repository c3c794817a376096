/**
 * Local randomizers: what a device answers at random in place of its value, as the votes that a report is.
 *
 * Each is exactly `epsilon`-locally-private for one value: no report is more than e^epsilon times likelier under one
 * value than under another (docs/word-discovery.md, "The device's part and the server's").
 */

import { Refused } from "../core/errors.ts";
import type { Draws } from "./draws.ts";

/** A local randomizer over the values 0 .. domain - 1. */
export interface Randomizer {
  /** The probability that a report does not support the device's own value. */
  readonly lie: number;
  /** The probability that it supports any one given other value. */
  readonly q: number;
  /** How many values a report supports, at most. */
  readonly mostSupported: number;
  /** Adds one report of a value: one vote (domain,) for each value that it supports. */
  vote(value: number, draws: Draws, votes: Uint32Array): void;
}

const EPSILONS = [1e-6, 30] as const; // below, a report says nothing; beyond, it hides nothing
const LARGEST_DOMAIN = 2 ** 31;

const RANDOMIZERS: Readonly<Record<string, (domain: number, epsilon: number) => Randomizer>> = {
  "subset-selection": subsetSelection,
  "projective-geometry": projectiveGeometry,
  "k-ary": (domain, epsilon) => {
    const lie = (domain - 1) / (Math.exp(epsilon) + domain - 1);
    return { lie, q: lie / (domain - 1), mostSupported: 1, vote: votingForSubsets(domain, 1, lie) };
  },
};

/** Throws: Refused for a name, a domain or an epsilon that is none. */
export function randomizerOf(name: string, domain: number, epsilon: number): Randomizer {
  const made = Object.hasOwn(RANDOMIZERS, name) ? RANDOMIZERS[name] : undefined;
  if (made === undefined) throw new Refused(`the randomizer '${name}' is unknown to this device.`);
  if (!(domain >= 2 && domain <= LARGEST_DOMAIN)) throw new Refused(`a question with ${domain} answers hides nothing, or is too large.`);
  if (!(epsilon >= EPSILONS[0] && epsilon <= EPSILONS[1])) {
    throw new Refused(`a local epsilon of ${epsilon} is not from ${EPSILONS[0]} to ${EPSILONS[1]}.`);
  }
  return made(domain, epsilon);
}

/**
 * A set of `size` values, the own one among them with probability p, the others uniform.
 *
 * size = max(1, ceil(d / (e^eps + 1))), p = size e^eps / (size e^eps + d - size), q = (size - p) / (d - 1).
 * Source: Ye & Barg 2018, arXiv:1702.00610; Wang et al. 2019, arXiv:1607.08025.
 */
export function subsetSelection(domain: number, epsilon: number): Randomizer {
  const size = sizeOf(domain, epsilon);
  const others = domain - size;
  const lie = others / (size * Math.exp(epsilon) + others);
  return { lie, q: (size - (1 - lie)) / (domain - 1), mostSupported: size, vote: votingForSubsets(domain, size, lie) };
}

function sizeOf(domain: number, epsilon: number): number {
  return Math.max(1, Math.ceil(domain / (Math.exp(epsilon) + 1)));
}

/** A uniform set of so many values without the own one, or with it (Floyd's algorithm, Bentley & Floyd 1987). */
function votingForSubsets(domain: number, size: number, lie: number): Randomizer["vote"] {
  let taken = new Uint8Array(); // of the other values; zeros between reports
  let chosen = new Uint32Array();
  return (value, draws, votes) => {
    if (taken.length === 0) [taken, chosen] = [new Uint8Array(domain), new Uint32Array(size)]; // not where it is refused
    const included = !draws.happens(lie);
    const wanted = included ? size - 1 : size;
    const others = domain - 1;
    for (let drawn = 0; drawn < wanted; drawn++) {
      const last = others - wanted + drawn;
      const other = draws.below(last + 1);
      chosen[drawn] = taken[other] === 1 ? last : other;
      taken[chosen[drawn] as number] = 1;
    }
    for (const other of chosen.subarray(0, wanted)) {
      taken[other] = 0;
      support(votes, other < value ? other : other + 1);
    }
    if (included) support(votes, value);
  };
}

function support(votes: Uint32Array, value: number): void {
  votes[value] = (votes[value] as number) + 1;
}

/** The projective space over the field of `order` elements, a prime, whose points have `length` coordinates. */
export interface Space {
  readonly order: number;
  readonly length: number;
}

const MOST_POINTS = 2 ** 26;
const WORTH_A_BIT = 1.01; // a smaller space is taken where its variance is within 1 percent of the best

/** (q^n - 1) / (q - 1), where n is `length` less `independent`. */
export function pointsOf({ order, length }: Space, independent = 0): number {
  let points = 0;
  for (let power = 0; power < length - independent; power++) points = points * order + 1;
  return points;
}

/** The space with at least `domain` points whose reports have the least variance, or nearly, in fewer bits. Throws: Refused. */
export function spaceFor(domain: number, epsilon: number): Space {
  const scored: { readonly score: number; readonly space: Space }[] = [];
  for (let length = 2; length < 2 + domain.toString(2).length; length++) {
    const least = smallestOrder(length, domain);
    const most = smallestOrder(length, MOST_POINTS + 1) - 1;
    const wanted = Math.min(Math.max(Math.round(Math.exp(epsilon)) + 1, least), most);
    for (const order of [primeFrom(least, 1), primeFrom(wanted, 1), primeFrom(wanted, -1)]) {
      const space = { order, length };
      if (least <= order && order <= most) scored.push({ score: rareVariance(space, epsilon), space });
    }
  }
  if (scored.length === 0) throw new Refused(`${domain} answers need a space of more than ${MOST_POINTS} points.`);
  const best = Math.min(...scored.map(({ score }) => score));
  const near = scored.filter(({ score }) => score <= WORTH_A_BIT * best).map(({ space }) => space);
  return near.reduce((smallest, each) => (pointsOf(each) < pointsOf(smallest) ? each : smallest));
}

/** The smallest order whose space has that many points. */
function smallestOrder(length: number, points: number): number {
  let order = Math.max(2, Math.trunc(points ** (1 / (length - 1))) - 2);
  while (pointsOf({ order, length }) < points) order++;
  return order;
}

/** The nearest prime at or after (step 1) or before (step -1) a number; 2 is the smallest. */
function primeFrom(number: number, step: 1 | -1): number {
  let found = Math.max(number, 2);
  while (!isPrime(found)) found += step;
  return found;
}

function isPrime(number: number): boolean {
  for (let divisor = 2; divisor * divisor <= number; divisor++) if (number % divisor === 0) return false;
  return true;
}

/** The variance that one report adds to the estimate of a value which nobody holds. */
function rareVariance(space: Space, epsilon: number): number {
  const { lie, q } = supportOf(space, epsilon);
  return (q * (1 - q)) / (1 - lie - q) ** 2;
}

function supportOf(space: Space, epsilon: number): { readonly lie: number; readonly q: number } {
  const [points, own, both] = [pointsOf(space), pointsOf(space, 1), pointsOf(space, 2)];
  const total = own * Math.exp(epsilon) + points - own;
  return { lie: (points - own) / total, q: (both * Math.exp(epsilon) + own - both) / total };
}

/**
 * A point of the hyperplane orthogonal to the value with probability p, else one outside it; it supports every value
 * in its own hyperplane.
 *
 * Source: Feldman, Nelson, Nguyen & Talwar 2022, arXiv:2203.00194.
 */
function projectiveGeometry(domain: number, epsilon: number): Randomizer {
  const space = spaceFor(domain, epsilon);
  const { lie, q } = supportOf(space, epsilon);
  return {
    lie,
    q,
    mostSupported: Math.min(pointsOf(space, 1), domain),
    vote: (value, draws, votes) => supportOrthogonal(space, drawnPoint(space, vectorOf(space, value), draws.happens(lie), draws), votes),
  };
}

/**
 * The canonical vector of a point, whose first coordinate that is not 0 is 1. Points are numbered so: first those with a
 * 1 in front, by the digits behind it; then those with 0, 1 in front; the last is (0, ..., 0, 1).
 */
export function vectorOf({ order, length }: Space, point: number): number[] {
  const vector = new Array<number>(length).fill(0);
  let [rest, lead] = [point, 0];
  for (let block = order ** (length - 1); rest >= block; block /= order) {
    rest -= block;
    lead++;
  }
  for (let place = length - 1; place > lead; place--) {
    vector[place] = rest % order;
    rest = Math.floor(rest / order);
  }
  vector[lead] = 1;
  return vector;
}

/**
 * A uniform point of the hyperplane of a value's vector, or `outside` it.
 *
 * All coordinates but the value's leading one are uniform; that one is solved for. Every point has equally many such
 * vectors; the vector 0 is drawn again.
 */
function drawnPoint({ order, length }: Space, value: readonly number[], outside: boolean, draws: Draws): readonly number[] {
  const lead = value.findIndex((each) => each !== 0);
  const product = outside ? 1 + draws.below(order - 1) : 0;
  for (;;) {
    const point = Array.from({ length }, () => draws.below(order));
    point[lead] = 0;
    const rest = point.reduce((sum, each, place) => (sum + each * (value[place] as number)) % order, 0);
    point[lead] = (product - rest + order) % order;
    if (point.some((each) => each !== 0)) return point;
  }
}

/** Adds a vote for every value that is orthogonal to a point: values come in lines (u, b), b = 0 .. order - 1. */
export function supportOrthogonal(space: Space, point: readonly number[], votes: Uint32Array): void {
  const { order, length } = space;
  const last = point[length - 1] as number;
  const slope = last === 0 ? 0 : order - inverse(last, order); // b = -<u, y> / y_t
  const shorter = { order, length: length - 1 };
  const lines = Math.min(Math.ceil(votes.length / order), pointsOf(shorter));
  for (let line = 0; line < lines; line++) {
    const product = vectorOf(shorter, line).reduce((sum, each, place) => (sum + each * (point[place] as number)) % order, 0);
    if (last !== 0) supportWithin(votes, line * order + ((product * slope) % order));
    else if (product === 0) for (let b = 0; b < order; b++) supportWithin(votes, line * order + b);
  }
  if (last === 0) supportWithin(votes, pointsOf(space) - 1); // the point (0, ..., 0, 1) is on no line
}

function supportWithin(votes: Uint32Array, value: number): void {
  if (value < votes.length) support(votes, value);
}

/** 1/a modulo a prime (Fermat), by squares; products stay below 2^53, as orders stay below 2^26. */
function inverse(number: number, prime: number): number {
  let [result, square] = [1, number % prime];
  for (let power = prime - 2; power > 0; power = Math.floor(power / 2)) {
    if (power % 2 === 1) result = (result * square) % prime;
    square = (square * square) % prime;
  }
  return result;
}
