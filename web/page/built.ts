/** What the build decided of this page, and nobody can change later. */

/** Written in by the build (`build.ts`). */
declare const BUILT: {
  /** Origins of the servers that the page may speak with; none: the one that serves it. */
  readonly servers: readonly string[];
  /** The public key whose log has to show a bundle before the page takes it; null: it takes any. */
  readonly publisher: string | null;
  /** The version of the extension that this page belongs to; null: it is a page of a host. */
  readonly extension: string | null;
};

export const { extension, publisher, servers } = BUILT;

/** The servers that the page may speak with, as origins. */
export const allowedServers: readonly string[] = servers.length === 0 ? [location.origin] : servers;
