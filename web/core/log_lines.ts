/** The lines of a transparency log. */

export const planLine = (digest: string): string => `plan ${digest}`;
export const bundleLine = (digest: string): string => `bundle ${digest}`;
export const handOverLine = (digest: string): string => `hand-over ${digest}`;
export const tokenKeyLine = (epoch: number, digest: string): string => `token-key ${epoch} ${digest}`;
