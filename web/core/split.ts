/** Which text judges models: what was typed last, which no training reads (docs/device.md, `split`). */

/** Where the text that judges begins. */
export interface Split {
  readonly rule: "time" | "count" | "date" | "last";
  /** A share of the sentences, a number of them, or Unix seconds. */
  readonly value: number;
}

const FORMS = "write time:0.8, count:100, date:2004-06-01 or last:20";

/** Of `time:0.8`, `count:100`, `date:2004-06-01` or `last:20`. Throws: RangeError naming the four. */
export function readSplit(text: string): Split {
  const [, rule, said] = /^(time|count|date|last):(.+)$/.exec(text) ?? [];
  if (rule === undefined || said === undefined) throw new RangeError(`split "${text}" is unknown; ${FORMS}.`);
  if (rule === "date") {
    const at = /^\d{4}-\d{2}-\d{2}$/.test(said) ? new Date(`${said}T00:00:00Z`) : null;
    // A day that no month has becomes one of the next month.
    if (at === null || Number.isNaN(at.getTime()) || at.toISOString().slice(0, 10) !== said) {
      throw new RangeError(`split "${text}" is no day; ${FORMS}.`);
    }
    return { rule, value: at.getTime() / 1000 };
  }
  const value = Number(said);
  if (rule === "time" && !(value > 0 && value < 1)) throw new RangeError(`split "${text}" is no share between 0 and 1; ${FORMS}.`);
  if (rule !== "time" && !(Number.isInteger(value) && value >= 1)) throw new RangeError(`split "${text}" is no number of sentences; ${FORMS}.`);
  return { rule: rule as Split["rule"], value };
}

/**
 * Which sentences train, and which judge, by the time of each; null where the text cannot be parted.
 *
 * Sentences of one time are never parted. Both lists are increasing, and neither is empty.
 */
export function parted({ rule, value }: Split, times: readonly number[]): { readonly train: readonly number[]; readonly test: readonly number[] } | null {
  const rows = times.map((_, row) => row).toSorted((a, b) => (times[a] as number) - (times[b] as number)); // stable
  const sorted = rows.map((row) => times[row] as number);
  const changes = sorted.flatMap((time, place) => (place > 0 && time > (sorted[place - 1] as number) ? [place] : []));
  if (rows.length === 0 || (changes.length === 0 && rule !== "date")) return null;
  const cut = cutOf(rule, value, sorted, changes);
  if (cut < 1 || cut >= rows.length) return null;
  const increasing = (part: readonly number[]): readonly number[] => part.toSorted((a, b) => a - b);
  return { train: increasing(rows.slice(0, cut)), test: increasing(rows.slice(cut)) };
}

/** How many sentences come before those that judge. */
function cutOf(rule: Split["rule"], value: number, times: readonly number[], changes: readonly number[]): number {
  const all = times.length;
  if (rule === "date") return times.filter((time) => time < value).length;
  if (rule === "time") {
    const apart = changes.map((place) => Math.abs(place - value * all));
    return changes[apart.indexOf(Math.min(...apart))] as number; // the earlier of two as near
  }
  const wanted = Math.max(rule === "count" ? value : all - value, 0);
  return [0, ...changes, all].findLast((edge) => edge <= wanted) as number;
}
