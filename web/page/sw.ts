/**
 * Keeps the built page, so that it works without a network, and takes another bundle only with a proof.
 *
 * A bundle is kept only whole: each file by its SHA-256. Where the page was built with a publisher's key, a bundle is
 * taken only where that publisher's log shows it: a signed head, the bundle's line, the log that was seen before goes
 * on, and the line stands behind that of the bundle that is here. Otherwise the one that is here stays.
 *
 * This script knows no bundle, so it changes only when it itself does. The browser fetches it by itself, and runs
 * another one that its host sends: that no worker can refuse (docs/threat-model.md). The page says so (`guard.ts`).
 *
 * It answers for the page's own files and for nothing else: what the protocol asks goes to the network as it is.
 */

import { admitted, readBundle, writtenBundle, type Bundle } from "../core/bundle.ts";
import { sha256, toHex } from "../core/bytes.ts";
import { saidBy } from "../core/errors.ts";
import type { KeptLog } from "../core/log.ts";
import { publisher } from "./built.ts";
import { BUNDLE, GUARD, LOG, type Found, type FromGuard } from "./guarded.ts";

/** Written in by the build: by what this script knows itself, among those that came before and come after. */
declare const GUARD_ID: string;

const worker = self as unknown as ServiceWorkerGlobalScope;
const scope = new URL(worker.registration.scope);
const STATE = "tacit-guard";
const FILES = "tacit-page-"; // and the digest of a bundle
const MOST_TEXT = 16 * 2 ** 20; // bytes of a log or a bundle.json

let looking: Promise<Found> | null = null;
let kept: Bundle | null = null; // as it was read last

worker.addEventListener("install", (event) => event.waitUntil(installed()));
worker.addEventListener("activate", (event) => event.waitUntil(onlyThese().then(() => worker.clients.claim())));
worker.addEventListener("message", (event) => {
  if (event.data === "look") event.waitUntil(look().then((found) => event.ports[0]?.postMessage(found satisfies FromGuard)));
});
worker.addEventListener("fetch", (event) => {
  const name = nameOf(new URL(event.request.url));
  if (event.request.method === "GET" && name !== null) event.respondWith(answered(name, event.request));
});

/** The first bundle. A worker that takes the place of another finds what that one kept. */
async function installed(): Promise<void> {
  try {
    if ((await bundle("kept")) === null) await take(null);
    const named = ((await bundle("next")) ?? (await bundle("kept")))?.files.get(GUARD);
    if (named !== undefined) await write(GUARD_ID, named);
  } catch (thrown) {
    for (const each of await worker.clients.matchAll({ includeUncontrolled: true })) each.postMessage({ refused: saidBy(thrown) } satisfies FromGuard);
    throw thrown;
  }
}

/** Asks the host for another bundle, and takes it where it may. */
function look(): Promise<Found> {
  looking ??= looked().finally(() => (looking = null));
  return looking;
}

async function looked(): Promise<Found> {
  const here = await bundle("kept");
  let why: string | null = null;
  try {
    await take((await bundle("next")) ?? here);
  } catch (thrown) {
    why = saidBy(thrown);
  }
  const [next, log] = [await bundle("next"), await keptLog()];
  const guards = new Set([await read(GUARD_ID), here?.files.get(GUARD), next?.files.get(GUARD)].flatMap((each) => each ?? []));
  return { digest: here?.digest ?? null, next: next?.digest ?? null, why, entries: log?.entries ?? null, guards: [...guards] };
}

/** Takes what the host has, where it is another than `here`. Throws: why it does not. */
async function take(here: Bundle | null): Promise<void> {
  const offered = await readBundle(await textAt(BUNDLE));
  if (offered.digest === here?.digest) return;
  const log = publisher === null ? null : await admitted(offered.digest, here?.digest ?? null, await keptLog(), await textAt(LOG), publisher);
  await stored(offered, here);
  if (log !== null) await write("log", JSON.stringify(log));
  await write(here === null ? "kept" : "next", writtenBundle(offered)); // from here on it is there, and whole
  await onlyThese();
}

/** Each file of a bundle by its digest, from the network or from the bundle before. Throws: Error for any other. */
async function stored(offered: Bundle, before: Bundle | null): Promise<void> {
  const cache = await caches.open(FILES + offered.digest);
  // One after the other: all of them at once stand in memory twice.
  for (const [name, digest] of offered.files) {
    if (name === GUARD) continue; // the browser keeps it
    const same = before?.files.get(name) === digest ? await (await caches.open(FILES + before.digest)).match(new URL(name, scope)) : undefined;
    await cache.put(new URL(name, scope), same ?? (await verified(name, digest)));
  }
}

async function verified(name: string, digest: string): Promise<Response> {
  const answer = await fetch(new URL(name, scope), { cache: "no-cache", credentials: "omit", redirect: "error" });
  const body = await answer.clone().arrayBuffer();
  if (!answer.ok || toHex(await sha256(new Uint8Array(body))) !== digest) throw new Error(`${name} is not of the bundle.`);
  return answer;
}

async function textAt(name: string): Promise<string> {
  const answer = await fetch(new URL(name, scope), { cache: "no-store", credentials: "omit", redirect: "error" });
  if (!answer.ok) throw new Error(`the host has no ${name} (${answer.status}).`);
  const text = await answer.text();
  if (text.length > MOST_TEXT) throw new Error(`its ${name} is longer than ${MOST_TEXT} characters.`);
  return text;
}

/** A file of the bundle that is used. A navigation begins the next one, where no page of the one before is open. */
async function answered(name: string, asked: Request): Promise<Response> {
  if (asked.mode === "navigate") await begun();
  kept ??= await bundle("kept");
  if (kept === null) return fetch(asked);
  if (name === BUNDLE) return new Response(writtenBundle(kept), { headers: { "content-type": "application/json" } });
  const digest = kept.files.get(name);
  if (digest === undefined) return fetch(asked);
  return (await (await caches.open(FILES + kept.digest)).match(new URL(name, scope))) ?? verified(name, digest);
}

async function begun(): Promise<void> {
  kept = await bundle("kept"); // another worker may have changed it
  const next = await bundle("next");
  if (next === null || (await worker.clients.matchAll({ type: "window" })).length > 0) return;
  await write("kept", writtenBundle(next));
  await (await caches.open(STATE)).delete(place("next"));
  kept = next;
  if (looking === null) await onlyThese(); // or what is being stored would go
}

/** Files of no other bundle than the one that is here and the next stay. */
async function onlyThese(): Promise<void> {
  const wanted = [await bundle("kept"), await bundle("next")].map((each) => FILES + (each?.digest ?? ""));
  const names = await caches.keys();
  await Promise.all(names.filter((each) => each.startsWith(FILES) && !wanted.includes(each)).map((each) => caches.delete(each)));
}

async function bundle(which: "kept" | "next"): Promise<Bundle | null> {
  const text = await read(which);
  return text === null ? null : readBundle(text);
}

async function keptLog(): Promise<KeptLog | null> {
  const text = await read("log");
  return text === null ? null : (JSON.parse(text) as KeptLog);
}

const place = (name: string): URL => new URL(`.tacit-guard/${name}`, scope); // no address of the host: keys of a cache

async function read(name: string): Promise<string | null> {
  const found = await (await caches.open(STATE)).match(place(name));
  return found === undefined ? null : found.text();
}

async function write(name: string, text: string): Promise<void> {
  await (await caches.open(STATE)).put(place(name), new Response(text));
}

/** The name of a file that may be the bundle's; null for what goes to the network, as the protocol and this script do. */
function nameOf(address: URL): string | null {
  if (address.origin !== scope.origin || !address.pathname.startsWith(scope.pathname)) return null;
  const name = address.pathname.slice(scope.pathname.length) || "index.html";
  return name === GUARD || name === LOG || name.startsWith("v1/") ? null : name;
}
