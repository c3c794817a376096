/** The one message of a device in a sealed round: its vector under a key of its own, and the key in shares. */

import { joined, sha256 } from "../bytes.ts";
import { Refused } from "../errors.ts";
import { machineOf, type Machine } from "./machine.ts";
import { challengeOf, drawnMasks, testing, type Scaled } from "./report_check.ts";
import { ringOf, type Ring } from "./ring.ts";
import { boxContext, isAmong, reportBytesOf, type SealedRound } from "./round.ts";
import {
  agreed,
  agreementKeyOf,
  identityOf,
  KEY_BYTES,
  random,
  sealed,
  signature,
  stream,
  tag,
  type Draw,
  type Stream,
} from "./secrets.ts";
import { bytesOf, combining, modulo, rowOf, split, type Elements } from "./shares.ts";
import { behindItsLength, header, littleEndian } from "./wire.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const VERSION = 5;
const REPORT = 33; // its kind

/**
 * The bytes of the report of a vector (dimension,), for this round alone: as many for every vector.
 *
 * compiled: `web/lattice/lattice.wasm`. The caller has checked the settings (`refuseRound`). draw gives 32 bytes twice:
 * the identity, and what all other secrets follow from. Throws: Refused for a vector that the round does not sum.
 */
export async function sealedReport(
  compiled: WebAssembly.Module,
  round: SealedRound,
  vector: Uint32Array,
  draw: Draw = random,
): Promise<Bytes> {
  const identity = await identityOf(draw(KEY_BYTES));
  const own = stream(draw(KEY_BYTES));
  refuseVector(round, vector, identity.public);
  const client = identity.public;
  const { body: bodyBytes, report: bytes } = reportBytesOf(round);
  const report = new Uint8Array(bytes);
  const body = report.subarray(bytes - bodyBytes);

  const machine = await machineOf(compiled);
  const { scaled, key } = await encrypt(machine, round, vector, body, own);
  const ephemeral = await agreementKeyOf(await own(KEY_BYTES));
  const tagged = await tag(await agreed(ephemeral, round.server, "report tag", round.name, client), body);
  const bodyDigest = await sha256(body);

  const combine = combining(machine);
  const shares = await split(numbersOf(key, round), round.boxes.length, round.corrupt, own, combine);
  const tested = testing(machine, round, scaled, combine);
  for (;;) {
    // Until masks hide what they are added to: 2.7 times on average, whatever key and vector are.
    const masks = await split(await drawnMasks(round, own), round.boxes.length, round.corrupt, own, combine);
    const boxes = await boxesOf(round, client, shares, masks, own);
    const digests = [...(await Promise.all([...boxes, joined(ephemeral.public, tagged)].map(sha256))), bodyDigest];
    const parts = tested(await challengeOf(round, client, digests), shares, masks);
    if (parts === null) continue;
    const said = bytesOf(parts);
    const signed = await signature(identity, "report", joined(round.name, client, ...digests, await sha256(said)));
    const list = joined(...boxes.map(behindItsLength));
    const fields = [client, list, ephemeral.public, tagged, bodyDigest, said, signed].map(behindItsLength);
    report.set(joined(header(VERSION, REPORT, round.name), ...fields, littleEndian(bodyBytes, 4)));
    return report;
  }
}

function refuseVector(round: SealedRound, vector: Uint32Array, client: Uint8Array): void {
  if (vector.length !== round.dimension)
    throw new Refused(`a vector of ${vector.length} words is not of ${round.dimension}, which the round sums.`);
  const most = isAmong(client, round.contributors) ? 2 * round.margin : round.largest;
  for (let place = 0; place < vector.length; place++) {
    if (vector[place]! > most)
      throw new Refused(`a word of the vector is ${vector[place]}, and the round takes numbers up to ${most}.`);
  }
}

/** The ciphertexts a_j s + t e_j + m_j in `body`, what the check needs of them, and the key s (N,). */
async function encrypt(
  machine: Machine,
  round: SealedRound,
  vector: Uint32Array,
  body: Uint8Array,
  draw: Stream,
): Promise<{ scaled: Scaled; key: BigInt64Array }> {
  const { loops, room, words, longs } = machine;
  const { polynomials, capacity, perCoefficient, width, checks } = round.slots;
  const ring: Ring = ringOf(machine, round.parameters);
  const { degree } = ring;
  const small = room(8 * degree);
  const [wide, numbers] = [room(32 * degree), room(4 * capacity)];
  const [total, open, key] = [ring.polynomial(), ring.polynomial(), ring.polynomial()];
  const scaled = { rows: room(4 * polynomials * (2 * degree - 1)), coefficients: room(4 * polynomials * degree) };
  const alpha = room(4 * degree);

  ring.sample(await draw(16 * degree), small);
  const secret = new BigInt64Array(longs(small, degree).slice().buffer);
  ring.prepared(small, key);
  for (let j = 0; j < polynomials; j++) {
    ring.sample(await draw(16 * degree), small);
    const part = vector.subarray(j * capacity, (j + 1) * capacity);
    words(numbers, part.length).set(part);
    loops.fill(wide, degree, numbers, part.length, perCoefficient, width, checks);
    ring.encrypted(small, wide, total);
    await ring.publicPolynomial(round.seed, j, open);
    ring.addProduct(total, open, key);
    ring.pack(total, body, (j * body.length) / polynomials);
    ring.switched(total, scaled.coefficients + 4 * j * degree);
    ring.switched(open, alpha);
    loops.asRow(alpha, degree, scaled.rows + 4 * j * (2 * degree - 1));
  }
  return { scaled, key: secret };
}

/** The key's numbers as secrets (packed, columns), zeros at the end. */
function numbersOf(key: BigInt64Array, { packed, columns }: SealedRound): Elements {
  const values = new Uint32Array(packed * columns);
  key.forEach((each, place) => (values[place] = modulo(Number(each))));
  return { rows: packed, columns, values };
}

/** For each decryptor its share and its masks, that it alone can read. */
async function boxesOf(
  round: SealedRound,
  client: Bytes,
  shares: Elements,
  masks: Elements,
  draw: Stream,
): Promise<Bytes[]> {
  const boxes: Bytes[] = [];
  for (const [place, key] of round.boxes.entries()) {
    const content = joined(bytesOf(rowOf(shares, place)), bytesOf(rowOf(masks, place)));
    boxes.push(await sealed(key, content, boxContext(round, client, place), draw));
  }
  return boxes;
}
