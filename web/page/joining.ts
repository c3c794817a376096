/** Whom the page comes from, and whom its device works with: the two are named beside each other. */

import { toHex } from "../core/bytes.ts";
import { CannotWork } from "../core/errors.ts";
import { readSigningKey } from "../core/signing.ts";
import { serverAddress } from "../core/transport.ts";
import { allowedServers, extension } from "./built.ts";
import type { Joined } from "./device.ts";
import { byId, show } from "./dom.ts";
import type { Storage } from "./storage.ts";

/** Says in every view where the page's code comes from, and that it is for demonstrations where the operator serves it. */
function showSource(server: string): void {
  if (extension !== null) {
    show("source", `Extension ${extension}`);
    show(
      "served",
      "The code of this page came with the extension, from whom you installed it, and not from the operator. ",
      `The operator lists its origin, ${location.origin} (tacit serve --web-origin).`,
    );
    return;
  }
  const demonstration = originOf(server) === location.origin;
  show("source", demonstration ? "Demonstration: the operator serves this page" : `Served by ${location.host}`);
  show(
    "served",
    `This page comes from ${location.host}. Whoever serves a page can change it, and read what you type.`,
    demonstration ? " Here the operator itself serves it: that is for demonstrations." : null,
  );
}

function originOf(server: string): string | null {
  try {
    return new URL(server.trim()).origin;
  } catch {
    return null; // as long as it is being written
  }
}

/** Why no answer came, as far as a page can know it: of a server elsewhere it is told nothing. null: of its own server. */
export function whyUnread(server: string): string | null {
  if (server === location.origin) return null;
  return `A browser does not say more. The server is away, or its operator does not let pages of ${location.origin} be devices (tacit serve --web-origin).`;
}

/** Fills the form with what was joined. `join` gets what reads the fields, which throws: CannotWork, Refused. */
export async function joinForm(storage: Storage, join: (read: () => Joined) => Promise<void>): Promise<void> {
  const [server, key, population, code, first] = (["server", "operator-key", "population", "code", "first-time"] as const).map((id) =>
    byId(id, HTMLInputElement),
  ) as [HTMLInputElement, HTMLInputElement, HTMLInputElement, HTMLInputElement, HTMLInputElement];
  const form = byId("join", HTMLFormElement);
  const joinedAlready = (): void => {
    first.disabled = true; // said once: later it is known what was spent
    const button = form.querySelector("button");
    if (button !== null) button.textContent = "Save";
  };
  const joined = await storage.setting<Joined>("joined");
  server.value = joined?.server ?? allowedServers[0] ?? "";
  if (joined !== null) {
    [key.value, population.value] = [joined.operatorKey, joined.population];
    [code.value, first.checked] = [joined.enrolmentCode ?? "", joined.firstTime];
    joinedAlready();
  }
  showSource(server.value);
  server.addEventListener("input", () => showSource(server.value));
  form.onsubmit = (event) => {
    event.preventDefault();
    void join(() => {
      const made: Joined = {
        server: allowed(serverAddress(server.value.trim()).origin),
        operatorKey: toHex(readSigningKey(key.value.trim())),
        population: population.value.trim(),
        firstTime: first.checked,
        enrolmentCode: code.value.trim() || null,
      };
      joinedAlready();
      return made;
    });
  };
}

/** Throws: CannotWork for a server that the page's policy of content keeps it from. */
function allowed(server: string): string {
  if (allowedServers.includes(server)) return server;
  throw new CannotWork(`'${server}' is no server that this page may speak with: it was built for ${allowedServers.join(", ")}. Take a page that was built for yours.`);
}
