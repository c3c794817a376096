/** What the build decided of this page, and nobody can change later. */

/** Written in by the build (`build.ts`). */
declare const BUILT: {
  /** Origins of the servers that the page may speak with; none: the one that serves it. */
  readonly servers: readonly string[];
};

export const { servers } = BUILT;

/** The servers that the page may speak with, as origins. */
export const allowedServers: readonly string[] = servers.length === 0 ? [location.origin] : servers;
