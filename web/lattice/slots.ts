// How coordinates lie in coefficients, and residues in bytes.

/** A polynomial's coefficients as whole numbers of four words (N, 4), zeros before
 * beyond the last slot: check slots of 1, then numbers. */
export function fill(wide: usize, degree: i32, numbers: usize, count: i32, slots: i32, width: i32, checks: i32): void {
  let number = -checks;
  for (let at = 0; at < degree; at++) {
    let place = wide + ((<usize>at) << 5);
    let word: u64 = 0;
    let bits = 0; // of the word, that have a value
    for (let slot = 0; slot < slots; slot++) {
      let value: u64 = 0;
      if (number < 0) value = 1;
      else if (number < count) value = load<u32>(numbers + ((<usize>number) << 2));
      number++;
      word |= value << bits;
      bits += width;
      if (bits < 64) continue;
      store<u64>(place, word);
      place += 8;
      bits -= 64;
      word = value >> (width - bits);
    }
    store<u64>(place, word);
  }
}

/** Residues (64, lanes) of so many bits as words (bits, lanes), zeros before: each lane is a string of bits. */
export function pack(residues: usize, degree: i32, bits: i32, out: usize): void {
  const lanes = degree >> 6;
  const row = (<usize>lanes) << 3;
  for (let number = 0; number < 64; number++) {
    const shift = (number * bits) & 63;
    const from = residues + <usize>number * row;
    const to = out + <usize>((number * bits) >> 6) * row;
    const cut = shift + bits > 64;
    for (let place: usize = 0; place < row; place += 8) {
      const value = load<u64>(from + place);
      store<u64>(to + place, load<u64>(to + place) | (value << shift));
      if (cut) store<u64>(to + row + place, load<u64>(to + row + place) | (value >> (64 - shift)));
    }
  }
}
