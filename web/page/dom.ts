/** Elements made of text alone: whatever is shown is text, never markup. */

type Child = Node | string | null;

/** An element by its name, with properties and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Partial<Record<string, string | boolean | (() => void)>>,
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (typeof value === "boolean") made.toggleAttribute(key, value);
    else if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((each) => each !== null));
  return made;
}

/** The element with this id, of this class. Throws: TypeError where the page has none. */
export function byId<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new TypeError(`the page has no ${kind.name} '${id}'`);
  return found;
}

export function show(id: string, ...children: readonly Child[]): void {
  byId(id, HTMLElement).replaceChildren(...children.filter((each) => each !== null));
}

/** A name and what it is, as a row of a list of facts. */
export function fact(name: string, value: string): HTMLElement {
  return element("div", { class: "fact" }, element("dt", {}, name), element("dd", {}, value));
}

export function download(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  element("a", { href: address, download: name }).click();
  URL.revokeObjectURL(address);
}
