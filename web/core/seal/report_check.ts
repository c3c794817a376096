/** What a report says of itself: its ciphertexts are under the key that its shares give. All modulo p = 2^31 - 1. */

import type { Machine } from "./machine.ts";
import type { SealedRound } from "./round.ts";
import { derived, stream, type Stream } from "./secrets.ts";
import { lagrange, modulo, pointsOf, PRIME, rowOf, uniform, wordsIn, type Combine, type Elements } from "./shares.ts";

export const TESTS = 64;
export const PART_TESTS = 2; // elements of the parts that say that shares lie on polynomials of a degree
const PICKS = 16; // coefficients of ciphertexts in a test

/** What the tests of one report ask. */
export interface Challenge {
  readonly words: Uint8Array; // (TESTS, PICKS) of 8 bytes
  readonly factors: Uint8Array; // (TESTS, N)
  readonly code: Elements; // (PART_TESTS, columns)
}

/** It follows from all digests of the report: nobody knows it before. */
export async function challengeOf(
  round: SealedRound,
  client: Uint8Array,
  digests: readonly Uint8Array[],
): Promise<Challenge> {
  const draw = stream(await derived(round.name, "report check", client, ...digests));
  const words = await draw(8 * TESTS * PICKS);
  const factors = await draw(TESTS * round.parameters.degree);
  const values = await uniform(PART_TESTS * round.columns, draw);
  return { words, factors, code: { rows: PART_TESTS, columns: round.columns, values } };
}

/** Masks of all parts as numbers (packed, partElements): random, but those of a test add up to its mask u. */
export async function drawnMasks(round: SealedRound, draw: Stream): Promise<Elements> {
  const { packed, partElements } = round;
  const values = await uniform(packed * partElements, draw);
  const most = TESTS * round.parameters.shift;
  const whole = wordsIn(await draw(4 * TESTS)).map((each) => modulo((each & (2 * most - 1)) - most));
  for (let test = 0; test < TESTS; test++) {
    const first = PART_TESTS + test * packed;
    let rest = 0;
    for (let place = 1; place < packed; place++) rest += values[place * partElements + first + place]!;
    values[first] = modulo(whole[test]! - rest);
  }
  return { rows: packed, columns: partElements, values };
}

/** Ciphertexts and public polynomials, scaled to the field, at addresses of a machine. */
export interface Scaled {
  readonly rows: number; // (polynomials, 2 N - 1) u32, of the public ones, as `asRow` has them
  readonly coefficients: number; // (polynomials, N) u32, of the ciphertexts
}

/** What decryptors would find, and whether they and the server would say that the report fits. */
export type Tested = (challenge: Challenge, shares: Elements, masks: Elements) => Uint32Array | null;

/**
 * The parts (quorum, partElements) of a challenge, in room that the next one takes again; null where they would say
 * more of the key than that it fits.
 */
export function testing(machine: Machine, round: SealedRound, scaled: Scaled, combine: Combine): Tested {
  const { loops, room, bytes, words } = machine;
  const { columns, packed, quorum, partElements, parameters } = round;
  const { degree, factor, shift } = parameters;
  const { polynomials } = round.slots;
  const [picks, factors] = [room(8 * TESTS * PICKS), room(TESTS * degree)];
  const [rows, share, found] = [room(4 * TESTS * degree), room(4 * columns), room(4 * TESTS * packed)];
  const back = Array.from({ length: packed }, (_, place) => PRIME - 1 - place);
  const weights = lagrange(pointsOf(quorum), back);
  const most = (TESTS - 1) * shift;
  return (challenge, shares, masks) => {
    bytes(picks, challenge.words.length).set(challenge.words);
    bytes(factors, challenge.factors.length).set(challenge.factors);
    for (let test = 0; test < TESTS; test++) {
      const [asked, signed, row] = [picks + 8 * test * PICKS, factors + test * degree, rows + 4 * test * degree];
      loops.keyRow(asked, PICKS, signed, factor, scaled.rows, polynomials, degree, row);
    }
    const parts = new Uint32Array(quorum * partElements);
    for (let party = 0; party < quorum; party++) {
      const own = rowOf(shares, party);
      words(share, columns).set(own);
      loops.keyParts(rows, TESTS, degree, share, columns, packed, found);
      const code = combine(challenge.code, { rows: columns, columns: 1, values: own }).values;
      const mask = rowOf(masks, party);
      const part = parts.subarray(party * partElements, (party + 1) * partElements);
      code.forEach((each, place) => (part[place] = modulo(each + mask[place]!)));
      words(found, TESTS * packed).forEach(
        (each, place) => (part[PART_TESTS + place] = modulo(each - mask[PART_TESTS + place]!)),
      );
    }
    // Of the numbers that the parts share, number r of a test's column r, added over r, is what the key adds to it.
    const numbers = combine(weights, { rows: quorum, columns: partElements, values: parts });
    loops.picked(picks, TESTS, PICKS, scaled.coefficients, polynomials * degree, found);
    const gammas = words(found, TESTS);
    let fits = true;
    for (let test = 0; test < TESTS; test++) {
      let key = 0;
      for (let place = 0; place < packed; place++) key += rowOf(numbers, place)[PART_TESTS + test * packed + place]!;
      const value = modulo(gammas[test]! - key);
      const y = value > PRIME / 2 ? value - PRIME : value;
      fits &&= y >= -most && y < most;
    }
    return fits ? parts : null;
  };
}
