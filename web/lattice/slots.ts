// How coordinates lie in coefficients, and residues in bytes.

/** A polynomial's coefficients as whole numbers of four words (N, 4), zeros before: check slots of 1, then numbers. */
export function fill(wide: usize, degree: i32, numbers: usize, count: i32, slots: i32, width: i32, checks: i32): void {
  let number = 0;
  for (let at = 0; at < degree; at++) {
    for (let slot = 0; slot < slots; slot++) {
      let value: u64 = 0;
      if (number < checks) value = 1;
      else if (number - checks < count) value = load<u32>(numbers + ((<usize>(number - checks)) << 2));
      number++;
      const shift = (slot * width) & 63;
      const place = wide + ((<usize>at) << 5) + ((<usize>((slot * width) >> 6)) << 3);
      store<u64>(place, load<u64>(place) | (value << shift));
      if (shift + width > 64) store<u64>(place + 8, load<u64>(place + 8) | (value >> (64 - shift)));
    }
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
