/** What the page and its service worker say to each other, and the files that they both name. */

export const GUARD = "sw.js"; // the service worker
export const BUNDLE = "bundle.json";
export const LOG = "log.json"; // the publisher's, beside the page

/** What the worker found when it was asked to look for another bundle. */
export interface Found {
  /** Of the bundle that is used; null: none. */
  readonly digest: string | null;
  /** Of one that was taken, and is used when all tabs of the page were closed. */
  readonly next: string | null;
  /** Why the host's bundle was not taken; null: it was, or is the one that is here. */
  readonly why: string | null;
  /** Lines of the publisher's log as it was seen; null: none was. */
  readonly entries: readonly string[] | null;
  /** The service workers, by SHA-256, that the bundles here name, and the one that is asked. */
  readonly guards: readonly string[];
}

export type FromGuard = Found | { readonly refused: string };
