/** The settings of a sealed round, as the one-message protocol has them (docs/secure-aggregation-protocols.md). */

import { joined, sha256, toHex, utf8 } from "../bytes.ts";
import { Malformed, Refused } from "../errors.ts";
import { isSmallAgreementKey } from "../signing.ts";
import {
  bitLength,
  errorBound,
  modulusOf,
  polynomialBytes,
  PUBLISHED,
  TAIL,
  type LatticeParameters,
} from "./parameters.ts";
import { PART_TESTS, TESTS } from "./report_check.ts";
import { KEY_BYTES, SEALED_BYTES, SIGNATURE_BYTES, TAG_BYTES } from "./secrets.ts";
import { behindItsLength, fieldsOf, fixed, littleEndian, numberIn, rowsIn } from "./wire.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const DIGEST_BYTES = 32;
const WORD = 32; // bits that a slot has at most
const CHECK_BITS = 128; // of check slots in each polynomial, at least
const MOST_PARTIES = 100; // decryptors, and contributors
const MOST_REPORTS = Math.floor((2 ** 31 - 2) / 2 / TAIL); // of which every sum of keys is told from its residue
const FIELDS = 15;
const MESSAGE_BYTES = 8 + 2 + 2 + DIGEST_BYTES; // before a message's fields
const REPORT_FIELDS = 8;

/** Settings that somebody can keep, and what follows from them. */
export interface SealedRound {
  readonly name: Bytes; // 32 bytes
  readonly series: Bytes; // 32 bytes: the name of the attempts of which decryptors open one
  readonly parameters: LatticeParameters;
  readonly dimension: number; // words of a vector
  readonly largest: number; // of a word
  readonly reportGoal: number;
  readonly mostReports: number;
  readonly corrupt: number;
  readonly decryptors: readonly Bytes[];
  readonly boxes: readonly Bytes[];
  readonly server: Bytes;
  readonly seed: Bytes;
  readonly plan: Bytes;
  readonly roundIndex: number;
  readonly contributors: readonly Bytes[];
  readonly margin: number;
  readonly slots: Slots;
  readonly quorum: number;
  readonly packed: number; // numbers of the key in an element of a share
  readonly columns: number; // elements of a share
  readonly partElements: number; // that each decryptor finds for the check
}

/** Where the coordinates lie. */
export interface Slots {
  readonly width: number; // bits
  readonly perCoefficient: number;
  readonly checks: number; // slots of 1 in each polynomial
  readonly capacity: number; // coordinates of a polynomial
  readonly polynomials: number;
}

/** Throws: Malformed for bytes that are no such record, Refused for settings that nobody can keep. */
export async function sealedRound(bytes: Bytes): Promise<SealedRound> {
  const [
    name,
    dimension,
    largest,
    goal,
    most,
    corrupt,
    decryptors,
    boxes,
    server,
    seed,
    plan,
    index,
    number,
    contributors,
    margin,
  ] = fieldsOf(bytes, FIELDS) as [
    Bytes,
    Bytes,
    Bytes,
    Bytes,
    Bytes,
    Bytes,
    Bytes,
    Bytes,
    Bytes,
    Bytes,
    Bytes,
    Bytes,
    Bytes,
    Bytes,
    Bytes,
  ];
  const set = new TextDecoder().decode(name);
  const parameters = Object.hasOwn(PUBLISHED, set) ? PUBLISHED[set] : undefined;
  if (parameters === undefined) throw new Refused(`'${set.slice(0, 40)}' are no published lattice parameters.`);
  const said = {
    parameters,
    dimension: numberIn(dimension, 8),
    largest: numberIn(largest, 8),
    reportGoal: numberIn(goal, 8),
    mostReports: numberIn(most, 8),
    corrupt: numberIn(corrupt, 4),
    decryptors: rowsIn(decryptors, KEY_BYTES),
    boxes: rowsIn(boxes, KEY_BYTES),
    server: fixed(server, KEY_BYTES),
    seed: fixed(seed, DIGEST_BYTES),
    plan: fixed(plan, DIGEST_BYTES),
    roundIndex: numberIn(index, 8),
    contributors: rowsIn(contributors, KEY_BYTES),
    margin: numberIn(margin, 8),
  };
  refuseParties(said);
  refuseCounts(said);
  const quorum = Math.floor((said.decryptors.length + said.corrupt) / 2) + 1;
  const packed = quorum - said.corrupt;
  return {
    ...said,
    name: await named("one message", bytes),
    series: await named("one message series", joined(...[plan, index, fixed(number, 8)].map(behindItsLength))),
    slots: slotsOf(said),
    quorum,
    packed,
    columns: Math.ceil(parameters.degree / packed),
    partElements: PART_TESTS + TESTS * packed,
  };
}

type Said = Omit<SealedRound, "name" | "series" | "slots" | "quorum" | "packed" | "columns" | "partElements">;

function named(label: string, record: Bytes): Promise<Bytes> {
  return sha256(joined(behindItsLength(utf8(label)), record));
}

function refuseParties({ decryptors, boxes, contributors, corrupt }: Said): void {
  const count = decryptors.length;
  if (areTwice(decryptors) || boxes.length !== count || areTwice(boxes)) {
    throw new Refused("each decryptor has one identity and one key for boxes, which no other decryptor has.");
  }
  if (corrupt < 1 || corrupt >= count || count > MOST_PARTIES) {
    throw new Refused(
      `${corrupt} of ${count} decryptors may be corrupt: at least one, fewer than all, and ${MOST_PARTIES} in all.`,
    );
  }
  if (areTwice(contributors) || contributors.length > MOST_PARTIES) {
    throw new Refused(`${contributors.length} contributors of noise: each once, and no more than ${MOST_PARTIES}.`);
  }
}

function areTwice(keys: readonly Bytes[]): boolean {
  return new Set(keys.map(toHex)).size < keys.length;
}

function refuseCounts({ reportGoal, mostReports, dimension, largest, contributors, margin }: Said): void {
  const most = MOST_REPORTS - contributors.length;
  if (reportGoal < 2 || reportGoal > mostReports || mostReports > most) {
    throw new Refused(
      `a sealed sum of ${reportGoal} to ${mostReports} reports: from 2 to ${most}, the goal not beyond the most.`,
    );
  }
  if (dimension < 1 || largest < 1) throw new Refused(`vectors of ${dimension} words up to ${largest} say nothing.`);
  if (contributors.length > 0 ? margin < 1 : margin !== 0) {
    throw new Refused(
      `contributors of noise have a margin of at least 1, and nobody else has; this round's is ${margin}.`,
    );
  }
}

function slotsOf({ parameters, dimension, largest, mostReports, contributors, margin }: Said): Slots {
  // In whole numbers of any length: a product of what a stranger says.
  const most = BigInt(largest) * BigInt(mostReports) + 2n * BigInt(margin) * BigInt(contributors.length);
  const width = bitLength(most);
  if (width > WORD) throw new Refused(`the round's sums take ${width} bits, and words have ${WORD}.`);
  const perCoefficient = Math.floor(parameters.plainBits / width);
  const checks = Math.ceil(CHECK_BITS / width);
  const capacity = parameters.degree * perCoefficient - checks;
  const polynomials = Math.ceil(dimension / capacity);
  const error = errorBound(mostReports + contributors.length, parameters.degree * polynomials);
  if (BigInt(error) > (modulusOf(parameters) >> BigInt(parameters.plainBits + 1)) - 1n) {
    throw new Refused(`${mostReports} reports are more than the round's lattice can open.`);
  }
  return { width, perCoefficient, checks, capacity, polynomials };
}

/** Whether a party's identity is one of these. */
export function isAmong(key: Uint8Array, keys: readonly Uint8Array[]): boolean {
  return keys.some((each) => toHex(each) === toHex(key));
}

/** The bytes of each box, of the parts and of the ciphertexts, and of a whole report. */
export function reportBytesOf(round: SealedRound): {
  readonly box: number;
  readonly parts: number;
  readonly body: number;
  readonly report: number;
} {
  const box = SEALED_BYTES + 4 * (round.columns + round.partElements);
  const parts = 4 * round.quorum * round.partElements;
  const body = round.slots.polynomials * polynomialBytes(round.parameters);
  const fields =
    KEY_BYTES + round.boxes.length * (4 + box) + KEY_BYTES + TAG_BYTES + DIGEST_BYTES + parts + SIGNATURE_BYTES + body;
  return { box, parts, body, report: MESSAGE_BYTES + 4 * REPORT_FIELDS + fields };
}

/** What a device demands of a round, by what its plan and its task say. */
export interface Demands {
  readonly threshold: number; // no sum of fewer reports is opened
  readonly decryptors: readonly string[]; // all of them, by identity in digits
  readonly boxes: readonly string[]; // their keys, in the same order
  readonly corrupt: number; // so many of them may work with the server
  readonly contributors: readonly string[]; // whose noise is in every sum
  readonly plan: string; // the plan's digest
  readonly round: number;
  readonly dimension: number;
  readonly largest: number;
  readonly seed: Uint8Array | null; // where contributors add noise, a hash of the task
  readonly joined: readonly string[]; // names of rounds that the device has reported in
}

/** Throws: Refused where the round is another than its plan and task say, or one that the device has reported in. */
export function refuseRound(round: SealedRound, demands: Demands): void {
  const { decryptors, contributors } = demands;
  if (isSmallAgreementKey(round.server))
    throw new Refused("the server's key of the sealed round is a point of small order: anybody agrees with it.");
  const boxOf = new Map(decryptors.map((key, place) => [key, demands.boxes[place]]));
  if (round.reportGoal < demands.threshold) {
    throw new Refused(
      `the sealed round opens sums of ${round.reportGoal} reports, and its plan of no fewer than ${demands.threshold}.`,
    );
  }
  round.decryptors.forEach((key, place) => {
    const name = toHex(key);
    if (!boxOf.has(name)) throw new Refused(`the sealed round's decryptor ${name.slice(0, 16)} is none of its plan's.`);
    if (boxOf.get(name) !== toHex(round.boxes[place]!))
      throw new Refused(`the sealed round has another box of ${name.slice(0, 16)} than its plan.`);
  });
  if (round.decryptors.length !== decryptors.length) {
    throw new Refused(`the sealed round has ${round.decryptors.length} decryptors, and its plan ${decryptors.length}.`);
  }
  if (round.corrupt < demands.corrupt) {
    throw new Refused(
      `the sealed round is safe against ${round.corrupt} of its decryptors, and its plan's against ${demands.corrupt}.`,
    );
  }
  const named = round.contributors.map(toHex);
  const missing = contributors.find((each) => !named.includes(each));
  if (missing !== undefined)
    throw new Refused(`the sealed round lacks the noise of ${missing.slice(0, 16)}, which its plan promises.`);
  if (toHex(round.plan) !== demands.plan || round.roundIndex !== demands.round) {
    throw new Refused("the sealed round is of another plan, or another of its rounds.");
  }
  if (demands.seed !== null && toHex(round.seed) !== toHex(demands.seed)) {
    throw new Refused("the sealed round has not the seed of its own task: noise may be added to another question.");
  }
  if (round.dimension !== demands.dimension || round.largest !== demands.largest) {
    throw new Refused("the sealed round sums other vectors than its reports are.");
  }
  if (demands.joined.includes(toHex(round.name)))
    throw new Refused("the device has reported in this sealed round; a second report would spoil it.");
}

/** The seed of an attempt's public polynomials: a hash of its task. signs: 32 bytes of an encoding, or none. */
export async function seedOf(plan: string, round: number, task: string, signs: Uint8Array): Promise<Bytes> {
  return sha256(joined(utf8(`tacit sealed round v1\0${plan} ${round} ${task} `), signs));
}

/** Throws: Malformed for digits that are none. */
export function settingsBytes(digits: string): Bytes {
  if (!/^([0-9a-f]{2})*$/.test(digits))
    throw new Malformed("the settings of a sealed round are not hexadecimal digits.");
  return Uint8Array.from({ length: digits.length / 2 }, (_, place) =>
    Number.parseInt(digits.slice(2 * place, 2 * place + 2), 16),
  );
}

/** The context of a box: what it is bound to. */
export function boxContext(round: SealedRound, client: Uint8Array, decryptor: number): Bytes {
  return joined(round.name, client, littleEndian(decryptor, 4));
}
