/** What a turn needs of a device, and what becomes of a turn. */

import type { Policy } from "./policy.ts";
import type { DeviceRecord } from "./record.ts";
import type { Handler, Sealing } from "./report.ts";

/** What became of a turn, for the device's owner, and when the next may be. */
export interface Turn {
  readonly what: "not eligible" | "idle" | "refused" | "unanswered" | "reported" | "lost";
  readonly why: string;
  /** Seconds between which the next turn is drawn; null: the device waits as after no answer. */
  readonly wait: { readonly after: number; readonly before: number } | null;
}

export interface Device {
  /** The operator's key, as it was pinned. */
  readonly operatorKey: string;
  readonly population: string;
  /** The digest of the words that this device knows. */
  readonly vocabulary: string;
  readonly policy: Policy;
  readonly record: DeviceRecord;
  readonly handlers: readonly Handler[];
  readonly sealing: Sealing | null;
  readonly enrolmentCode: string | null;
  /** Unix seconds. */
  clock(): number;
  /** Seconds, by a clock that nobody sets. */
  steady(): number;
  /** Why the device may not work now, or null. */
  eligible(): Promise<string | null>;
}

export function ended(what: Turn["what"], why: string, wait: Turn["wait"] = null): Turn {
  return { what, why, wait };
}

/** How long a device waits for its next turn, in seconds; `failures` turns in a row gave it nothing. */
export function waitAfter({ wait }: Turn, failures: number, lastBefore: number, random: number): number {
  if (wait !== null) return wait.after + random * (wait.before - wait.after);
  const [least, most] = [Math.max(1, lastBefore / 300), Math.max(3, lastBefore / 100)];
  const limit = Math.max(15 * 60, lastBefore);
  return Math.min((least + random * (most - least)) * 2 ** Math.max(0, failures - 1), limit);
}
