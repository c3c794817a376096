import { readFileSync } from "node:fs";

/** The loops as they are checked in. */
export const LATTICE = new WebAssembly.Module(readFileSync(new URL("../lattice/lattice.wasm", import.meta.url)));
