/**
 * Keeps the built page, so that it works without a network. A bundle is kept only whole: each file by its SHA-256.
 *
 * It answers for the page's own files and for nothing else: what the protocol asks goes to the network as it is.
 */

import { sha256, toHex } from "../core/bytes.ts";

/** Written in by the build: the digest of the bundle, and of each of its files. */
declare const BUNDLE: { readonly digest: string; readonly files: Readonly<Record<string, string>> };

const worker = self as unknown as ServiceWorkerGlobalScope;
const CACHE = `tacit-page-${BUNDLE.digest}`;
const scope = new URL(worker.registration.scope);

worker.addEventListener("install", (event) => event.waitUntil(kept().then(() => worker.skipWaiting())));
worker.addEventListener("activate", (event) => event.waitUntil(onlyThis().then(() => worker.clients.claim())));
worker.addEventListener("fetch", (event) => {
  const name = nameOf(new URL(event.request.url));
  if (event.request.method === "GET" && name !== null) event.respondWith(found(name, event.request));
});

async function kept(): Promise<void> {
  const cache = await caches.open(CACHE);
  // One after the other: all of them at once stand in memory twice.
  for (const [name, digest] of Object.entries(BUNDLE.files)) {
    const address = new URL(name, scope);
    const answer = await fetch(address, { cache: "no-cache", credentials: "omit" });
    const body = await answer.clone().arrayBuffer();
    if (!answer.ok || toHex(await sha256(new Uint8Array(body))) !== digest) throw new Error(`${name} is not of this bundle`);
    await cache.put(address, answer);
  }
}

async function onlyThis(): Promise<void> {
  const names = await caches.keys();
  await Promise.all(names.filter((each) => each.startsWith("tacit-page-") && each !== CACHE).map((each) => caches.delete(each)));
}

async function found(name: string, asked: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  return (await cache.match(new URL(name, scope))) ?? fetch(asked);
}

/** The file of the bundle that an address is of; null where it is none. */
function nameOf(address: URL): string | null {
  if (address.origin !== scope.origin || !address.pathname.startsWith(scope.pathname)) return null;
  const name = address.pathname.slice(scope.pathname.length) || "index.html";
  return Object.hasOwn(BUNDLE.files, name) ? name : null;
}
