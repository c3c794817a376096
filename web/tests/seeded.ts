/** Numbers from a seed, for tests alone (mulberry32): what fails once fails again. */
export interface Seeded {
  /** A whole number from 0 to below `most`. */
  below(most: number): number;
  /** A real number in [0, 1). */
  unit(): number;
}

export function seeded(seed: number): Seeded {
  let state = seed >>> 0;
  const unit = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { unit, below: (most) => Math.floor(unit() * most) };
}
