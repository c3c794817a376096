// Loops of encoding and sealing; `web/core/seal/lattice.ts` lays out their memory and calls them. All that they are given
// are addresses of a memory that holds what they are for, and whole numbers. Compiled by `npm run lattice`.

export { powers, transform, invert, scaleSmall, scale, addProduct, addWide, keep } from "./ring";
export { sample } from "./gaussian";
export { fill, pack } from "./slots";
export { addFraction, toField, asRow, keyRows, keyParts, picked, combine } from "./check";
export { flip, sylvester, paley, scaleWithin, roundAtRandom, roundToZero, squaredNorm } from "./rotation";
