/** The policy of content that a built page has, wherever it lies: code of its own, and the servers that it was built for. */

/** Directives that a page can give itself; `servers` are origins. Who frames it, only a header can say. */
export function contentPolicy(servers: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self' 'wasm-unsafe-eval'",
    "worker-src 'self'",
    `connect-src ${["'self'", ...servers].join(" ")}`,
    "style-src 'self'",
    "img-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types tacit",
  ].join("; ");
}

/** What a host is to send with every file: workers and service workers have the policy of their own file's answer. */
export function hostHeaders(servers: readonly string[]): Readonly<Record<string, string>> {
  return {
    "Content-Security-Policy": `${contentPolicy(servers)}; frame-ancestors 'none'`,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-cache",
  };
}
