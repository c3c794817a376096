/** Room for what graphs compute: what nobody needs any more is written over, so that a training leaves nothing behind. */

import type { Numbers, Tensor } from "./operators.ts";
import { PLAIN, type Products } from "./products.ts";

export class Room {
  readonly products: Products;
  private readonly held = new Map<ArrayBufferLike, { readonly data: Numbers; holders: number }>();
  private readonly free = new Map<string, Numbers[]>();

  /** products: how matrices are multiplied. */
  constructor(products = PLAIN) {
    this.products = products;
  }

  /** So many float32 numbers, of any values. */
  floats(length: number): Float32Array<ArrayBuffer> {
    return this.lent(`floats ${length}`, () => new Float32Array(length)) as Float32Array<ArrayBuffer>;
  }

  /** So many whole numbers, or truths. */
  wholes(length: number): Float64Array<ArrayBuffer> {
    return this.lent(`wholes ${length}`, () => new Float64Array(length)) as Float64Array<ArrayBuffer>;
  }

  /** From here on somebody more needs it. What is not lent, as a weight, is nobody's. */
  hold({ data }: Tensor): void {
    const found = this.held.get(data.buffer);
    if (found !== undefined) found.holders++;
  }

  /** From here on somebody less needs it. */
  release({ data }: Tensor): void {
    const found = this.held.get(data.buffer);
    if (found === undefined || --found.holders > 0) return;
    this.held.delete(data.buffer);
    const kind = `${found.data instanceof Float32Array ? "floats" : "wholes"} ${found.data.length}`;
    const others = this.free.get(kind);
    if (others === undefined) this.free.set(kind, [found.data]);
    else others.push(found.data);
  }

  /** Somebody gives it on: it is held by one less, and not free. */
  leave({ data }: Tensor): void {
    const found = this.held.get(data.buffer);
    if (found !== undefined) found.holders--;
  }

  private lent(kind: string, made: () => Numbers): Numbers {
    const data = this.free.get(kind)?.pop() ?? made();
    this.held.set(data.buffer, { data, holders: 0 });
    return data;
  }
}
