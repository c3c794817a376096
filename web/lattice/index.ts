// Loops of encoding, sealing and training; `web/core/seal/machine.ts` has their memory. They are given addresses in it that are
// good for so much, and believe them. Compiled by `npm run lattice`.

export { powers, transform, invert, scaleSmall, scale, addProduct, addWide, keep } from "./ring";
export { sample } from "./gaussian";
export { fill, pack } from "./slots";
export { addFraction, toField, asRow, keyRow, keyParts, picked, combine } from "./check";
export { multiply, multiplyTurned } from "./products";
export { flip, sylvester, paley, scaleWithin, roundAtRandom, roundToZero, squaredNorm } from "./rotation";
