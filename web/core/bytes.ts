/** Bytes and the texts that they are written as. */

const HEX = /^(?:[0-9a-f]{2})*$/;

/** Lower-case hexadecimal digits of bytes. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
}

/** Bytes of lower-case hexadecimal digits. Throws: TypeError for anything else. */
export function fromHex(digits: string): Uint8Array<ArrayBuffer> {
  if (!HEX.test(digits)) throw new TypeError(`not lower-case hexadecimal digits, two a byte: ${digits.slice(0, 20)}`);
  const bytes = new Uint8Array(digits.length / 2);
  for (let place = 0; place < bytes.length; place++) bytes[place] = Number.parseInt(digits.slice(2 * place, 2 * place + 2), 16);
  return bytes;
}

export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** One after another. */
export function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, each) => sum + each.length, 0));
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return whole;
}

export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}
