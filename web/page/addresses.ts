/** The page's own scripts, as Trusted Types want them: no other address ever becomes a worker. */

const SCRIPTS = ["report_worker.js", "sw.js"] as const;

type Script = (typeof SCRIPTS)[number];

interface Policies {
  createPolicy(name: string, rules: { createScriptURL(address: string): string }): { createScriptURL(address: string): string };
}

const trustedTypes = (globalThis as { readonly trustedTypes?: Policies }).trustedTypes;
const policy = trustedTypes?.createPolicy("tacit", { createScriptURL: (address) => ownScript(address) });

/** The address of one of the page's scripts. */
export function scriptAddress(name: Script): string {
  return policy === undefined ? ownScript(name) : policy.createScriptURL(name);
}

/** Where a file of the bundle is; "./": where all are. */
export function bundled(name: string): string {
  return new URL(name, document.baseURI).href;
}

function ownScript(address: string): string {
  if (!(SCRIPTS as readonly string[]).includes(address)) throw new TypeError(`'${address}' is no script of this page.`);
  return bundled(address);
}
