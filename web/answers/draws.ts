/** Randomness of a device: every bit from the system's generator, none from a seed. */

import { random, type Draw } from "../core/seal/secrets.ts";

const AT_ONCE = 2 ** 14; // bytes that are asked for together

/** Numbers of a source of random bytes, the system's but in tests. */
export class Draws {
  private readonly draw: Draw;
  private bytes = new Uint8Array();
  private at = 0;

  constructor(draw: Draw = random) {
    this.draw = draw;
  }

  /** Uniform in 0 .. end - 1, for an end up to 2^32. Draws again where a remainder would prefer small numbers. */
  below(end: number): number {
    const fair = 2 ** 32 - (2 ** 32 % end);
    for (;;) {
      const drawn = this.next(4).getUint32(0, true);
      if (drawn < fair) return drawn % end;
    }
  }

  /** Uniform in [0, 1), of 53 bits. */
  unit(): number {
    return Number(this.next(8).getBigUint64(0, true) >> 11n) * 2 ** -53;
  }

  /**
   * True with this probability, rounded up to a multiple of 2^-64: floating point costs no privacy.
   *
   * probability: above 0, up to 1.
   */
  happens(probability: number): boolean {
    const threshold = BigInt(Math.ceil(probability * (1 + 2 ** -50) * 2 ** 64));
    const most = 2n ** 64n - 1n;
    return this.next(8).getBigUint64(0, true) < (threshold < most ? threshold : most);
  }

  private next(count: number): DataView {
    if (this.at + count > this.bytes.length) [this.bytes, this.at] = [this.draw(AT_ONCE), 0];
    this.at += count;
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + this.at - count, count);
  }
}
