/** Epsilon of a Gaussian mechanism from its zCDP: exact at a delta, as Gaussian differential privacy has it. */

const ROOT_2 = Math.SQRT2;
const ROOT_PI = Math.sqrt(Math.PI);

/**
 * The least epsilon at `delta` of a Gaussian mechanism of so much zCDP, to a relative 1e-12 or so.
 *
 * mu is the root of 2 zcdp, and delta(epsilon) = Phi(-a) - exp(epsilon) Phi(-b) with a = epsilon / mu - mu / 2 and
 * b = a + mu (Balle & Wang 2018, arXiv:1805.06530, Theorem 8). Infinite zCDP has infinite epsilon.
 */
export function epsilonOf(zcdp: number, delta: number): number {
  if (!(delta > 0 && delta < 1)) throw new RangeError(`delta is between 0 and 1, and not ${delta}`);
  if (zcdp === Infinity) return Infinity;
  if (zcdp <= 0) return 0;
  const mu = Math.sqrt(2 * zcdp);
  if (deltaOf(0, mu) <= delta) return 0;
  let [low, high] = [0, mu];
  while (deltaOf(high, mu) > delta) [low, high] = [high, 2 * high];
  for (;;) {
    const middle = (low + high) / 2;
    if (middle <= low || middle >= high) return high; // the larger of two neighbours: never below the truth by rounding
    if (deltaOf(middle, mu) > delta) low = middle;
    else high = middle;
  }
}

/** delta at an epsilon of a Gaussian mechanism of this mu. */
function deltaOf(epsilon: number, mu: number): number {
  const a = (epsilon / mu - mu / 2) / ROOT_2;
  const b = (epsilon / mu + mu / 2) / ROOT_2;
  if (a >= 0) return (Math.exp(-a * a) * (scaledErfc(a) - scaledErfc(b))) / 2; // exp(epsilon - b^2) = exp(-a^2)
  return 1 - (Math.exp(-a * a) * (scaledErfc(-a) + scaledErfc(b))) / 2;
}

/** exp(x^2) erfc(x) for x >= 0: by the series of erf where it is short, else by Lentz's continued fraction. */
function scaledErfc(x: number): number {
  if (x < 2) {
    let term = x;
    let sum = x;
    for (let at = 1; Math.abs(term) > 1e-17 * sum; at++) {
      term *= (2 * x * x) / (2 * at + 1); // erf(x) = 2/sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (2n+1)!!
      sum += term;
    }
    return Math.exp(x * x) - (2 / ROOT_PI) * sum;
  }
  let fraction = 0;
  for (let at = 120; at >= 1; at--) fraction = at / 2 / (x + fraction);
  return 1 / (ROOT_PI * (x + fraction));
}
