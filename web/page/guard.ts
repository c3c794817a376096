/**
 * The page's side of its service worker: which bundle this is, whose log shows it, and what was refused.
 *
 * A browser runs whatever service worker the host sends next, without asking the one that is there. So the page, as long
 * as it is the one that was proved, looks for that: a worker that no bundle in the log names is said to its reader.
 */

import { sha256, toHex } from "../core/bytes.ts";
import { saidBy } from "../core/errors.ts";
import { bundleLine } from "../core/log_lines.ts";
import { bundled, scriptAddress } from "./addresses.ts";
import { publisher } from "./built.ts";
import { byId, fact, show } from "./dom.ts";
import { BUNDLE, GUARD, type Found, type FromGuard } from "./guarded.ts";

const PATIENCE = 120_000; // ms: a bundle is fetched meanwhile
const REPLACED =
  "The program that keeps this page was replaced by its host, and no bundle in the publisher's log names the new one. " +
  "From the next load on, this page is whatever its host sends. What you typed so far is safe; export it, and do not load the page again unless you trust the host.";

/** Has a service worker keep the page, looks for another bundle, and says what came of it. */
export async function guarded(): Promise<void> {
  if (!("serviceWorker" in navigator)) {
    tell(await shownBundle(), "not kept: this address is not https, or the browser has no service workers");
    return;
  }
  navigator.serviceWorker.addEventListener("message", ({ data }: MessageEvent<FromGuard>) => {
    if ("refused" in data) warn(`This page is not kept here, and works with a network alone: ${data.refused}`);
  });
  try {
    const registration = await navigator.serviceWorker.register(scriptAddress(GUARD));
    const guard = registration.active; // of this load: whatever replaces it is asked nothing
    if (guard === null) {
      tell(await shownBundle(), "kept from the second visit on");
      return;
    }
    const replaced = async (): Promise<void> => {
      if (!(await isNamed(await asked(guard)))) warn(REPLACED);
    };
    registration.addEventListener("updatefound", () => void replaced().catch(() => warn(REPLACED)));
    if (registration.installing !== null || registration.waiting !== null) await replaced();
    const found = await asked(guard);
    tell(found.digest ?? (await shownBundle()), "kept", found);
    if (found.why !== null) warn(`This page stays as it is, and its host's newer one was not taken: ${found.why}`);
  } catch (thrown) {
    tell("unknown", `not kept: ${saidBy(thrown)}`);
    if (navigator.serviceWorker.controller !== null) warn(`The program that keeps this page does not answer as it should (${saidBy(thrown)}). Its host may have replaced it.`);
  }
}

function asked(guard: ServiceWorker): Promise<Found> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("no answer came")), PATIENCE);
    guard.addEventListener("statechange", () => {
      if (guard.state === "redundant") reject(new Error("another one took its place"));
    });
    port1.onmessage = ({ data }: MessageEvent<Found>) => {
      clearTimeout(timer);
      resolve(data);
    };
    guard.postMessage("look", [port2]);
  });
}

/** Whether a new service worker is one that a bundle names which the log shows. Without a publisher all are. */
async function isNamed({ guards }: Found): Promise<boolean> {
  if (publisher === null) return true;
  const answer = await fetch(bundled(GUARD), { cache: "no-store", credentials: "omit" });
  // A host can send this request another file than the browser got: so a bundle has to name a second worker at all.
  return guards.length > 1 && guards.includes(toHex(await sha256(new Uint8Array(await answer.arrayBuffer()))));
}

/**
 * Of an extension: whether the operator's log, which every turn is shown, has this version of it. It asks for nothing.
 *
 * lines: of the log; null: none was shown yet.
 */
export async function showPackage(version: string, lines: readonly string[] | null): Promise<void> {
  const digest = await shownBundle();
  const at = lines?.indexOf(bundleLine(digest)) ?? -1;
  const seen = lines === null ? "not seen yet: the first round shows the operator's log" : "not the operator's: ask whom you have this extension from";
  show("bundle", fact("Extension", version), fact("Bundle", digest), fact("Whose log shows it", lines !== null && at >= 0 ? `entry ${at + 1} of ${lines.length} of the operator's log` : seen));
}

/** The digest in the `bundle.json` that this load came with. */
async function shownBundle(): Promise<string> {
  const answer = await fetch(bundled(BUNDLE), { credentials: "omit" });
  return answer.ok ? String(((await answer.json()) as { readonly digest?: string }).digest) : "unknown";
}

function tell(digest: string, offline: string, found: Found | null = null): void {
  show(
    "bundle",
    fact("Bundle", digest),
    fact("Whose log shows it", publisher === null ? "nobody's: this page was built without a publisher's key, and its host can change it unseen" : logged(digest, found)),
    fact("Without a network", offline),
    ...(found?.next == null ? [] : [fact("Next bundle", `${found.next}, used when all tabs of this page were closed`)]),
  );
}

function logged(digest: string, found: Found | null): string {
  const at = found?.entries?.indexOf(bundleLine(digest)) ?? -1;
  return at < 0 ? `not looked for yet; that of ${publisher}` : `entry ${at + 1} of ${found?.entries?.length} of the log of ${publisher}`;
}

/** In every view, and as long as the page is open. */
function warn(what: string): void {
  const warning = byId("warning", HTMLElement);
  warning.textContent = what;
  warning.hidden = false;
}
