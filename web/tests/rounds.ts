import { joined, utf8 } from "../core/bytes.ts";
import { agreementKeyOf } from "../core/seal/secrets.ts";
import { behindItsLength, littleEndian } from "../core/seal/wire.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** Of a round's settings what a test cares about. */
export interface Given {
  readonly set?: string;
  readonly dimension?: number;
  readonly largest?: number;
  readonly goal?: number;
  readonly most?: number;
  readonly corrupt?: number;
  readonly decryptors?: number;
  readonly contributors?: number;
  readonly margin?: number;
  readonly seed?: Bytes;
}

/** So many different keys that agree. */
export async function keys(count: number, first: number): Promise<Bytes[]> {
  return Promise.all(
    Array.from(
      { length: count },
      async (_, place) => (await agreementKeyOf(new Uint8Array(32).fill(first + place))).public,
    ),
  );
}

/** The record of a round's settings, by default one that devices take part in. */
export async function settings(given: Given = {}): Promise<Bytes> {
  const said = {
    set: "willow-4096",
    dimension: 5,
    largest: 100,
    goal: 2,
    most: 10,
    corrupt: 1,
    decryptors: 3,
    contributors: 0,
    margin: 0,
    seed: new Uint8Array(32).fill(7),
    ...given,
  };
  return joined(
    ...[
      utf8(said.set),
      ...[said.dimension, said.largest, said.goal, said.most].map((each) => littleEndian(each, 8)),
      littleEndian(said.corrupt, 4),
      joined(...(await keys(said.decryptors, 1))), // whoever signs by these is never asked
      joined(...(await keys(said.decryptors, 101))),
      (await keys(1, 201))[0]!,
      said.seed,
      new Uint8Array(32).fill(8),
      littleEndian(3, 8),
      littleEndian(0, 8),
      joined(...(await keys(said.contributors, 221))),
      littleEndian(said.margin, 8),
    ].map(behindItsLength),
  );
}
