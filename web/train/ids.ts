/** The ids that are no words. */

export const PAD = 0;
export const BOS = 1;
export const EOS = 2;
export const OOV = 3;
export const SPECIALS = 4;
