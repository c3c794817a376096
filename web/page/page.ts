/** The page: it starts what there is, and joins keyboard, device and views. What types comes first, and alone. */

import { ended, waitAfter, type Turn } from "../core/device.ts";
import { saidBy } from "../core/errors.ts";
import { loadExported } from "../train/exported.ts";
import { bundled } from "./addresses.ts";
import { extension } from "./built.ts";
import type { Joined, LatestModel } from "./device.ts";
import { byId, download, fact, show } from "./dom.ts";
import { guarded, showPackage } from "./guard.ts";
import { keyboard } from "./keyboard.ts";
import { number } from "./said.ts";
import { openStorage, type Storage } from "./storage.ts";
import { Suggestions, type Which } from "./suggestions.ts";
import type { PastTurn } from "./views.ts";

const VIEWS = ["type", "kept", "left", "rounds", "rules"] as const;
const COMPARED = 3;
const FAILED: readonly Turn["what"][] = ["unanswered", "refused", "lost", "not eligible"];
const LONGEST_TIMER = 2 ** 31 / 1000; // seconds that a browser's timer can wait

async function file(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const answer = await fetch(bundled(`model/${name}`), { credentials: "omit" });
  if (!answer.ok) throw new Error(`the page has no model/${name} (${answer.status}); build it again.`);
  return new Uint8Array(await answer.arrayBuffer());
}

async function start(): Promise<void> {
  let which: Which = "shipped";
  const field = byId("message", HTMLTextAreaElement);
  // Keys work at once; suggestions come when the model is there.
  const loading = Promise.all([openStorage(), loadExported(file)]);
  const typing = keyboard(
    { field, suggestions: byId("suggestions", HTMLElement), keys: byId("keys", HTMLElement) },
    (what) => show("corrected", what),
  );
  const [storage, exported] = await loading;
  let latest = await storage.setting<LatestModel>("latest");
  const suggestions = new Suggestions(exported);
  if (latest !== null) suggestions.showLatest(latest.model);
  typing.know(exported.vocabulary, (ids, typed, count) => {
    if (byId("compare", HTMLDetailsElement).open) compare(ids, typed);
    return suggestions.shown(ids, typed, count, which);
  });
  const { joinForm, overview, pause, policyForm, randomShare, showBudget, showJournal, showTexts, showTurn, takeTurn, whyUnread } = await import("./behind.ts");

  function compare(ids: readonly number[], typed: string): void {
    const words = (model: Which): string => suggestions.shown(ids, typed, COMPARED, model).map((each) => each.word).join(", ") || "nothing";
    show(
      "compare-about",
      latest === null
        ? "This device has seen no round yet. After its first one, both are shown here."
        : `The shared model as round ${latest.round} of ${latest.run} began: what all who took part before made of it.`,
    );
    show(
      "compare-words",
      fact("As shipped", words("shipped")),
      ...(latest === null ? [] : [fact(`Round ${latest.round}`, words("latest"))]),
    );
    byId("use-latest", HTMLInputElement).disabled = latest === null;
  }

  const refreshTexts = async (): Promise<void> =>
    showTexts(await storage.texts(), (id) => act(async () => {
      await storage.remove(id);
      await refreshTexts();
    }));

  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let lastBefore = 0;
  let nextAt: number | null = null;
  const refreshDevice = async (): Promise<void> => {
    const joined = await storage.setting<Joined>("joined");
    const found = await overview(storage, joined);
    showJournal(found);
    showBudget(found);
    if (extension !== null) await showPackage(extension, found.logged);
    showTurn(await storage.setting<PastTurn>("turn"), nextAt === null ? null : (nextAt - Date.now()) / 1000, joined === null ? null : whyUnread(joined.server));
    byId("pause", HTMLButtonElement).setAttribute("aria-pressed", String(found.paused));
    byId("pause", HTMLButtonElement).textContent = found.paused ? "Resume" : "Pause";
    byId("turn-now", HTMLButtonElement).disabled = joined === null;
    byId("pause", HTMLButtonElement).disabled = joined === null;
    show("state", joined === null ? "takes part in nothing" : found.paused ? "paused" : `${number(found.spent)} of ${number(found.policy.budget_zcdp)} spent`);
  };

  const turn = async (): Promise<void> => {
    clearTimeout(timer);
    const joined = await storage.setting<Joined>("joined");
    if (joined === null) return;
    const button = byId("turn-now", HTMLButtonElement);
    button.disabled = true;
    show("state", "asking");
    try {
      const found = (await takeTurn(storage, joined, exported)) ?? ended("not eligible", "another tab has a turn under way.");
      failures = FAILED.includes(found.what) ? failures + 1 : 0;
      lastBefore = found.wait?.before ?? lastBefore;
      const seconds = waitAfter(found, failures, lastBefore, randomShare());
      nextAt = Date.now() + 1000 * seconds;
      timer = setTimeout(() => act(turn), 1000 * Math.min(seconds, LONGEST_TIMER));
      const before = latest;
      latest = await storage.setting<LatestModel>("latest");
      if (latest !== null && latest.round !== before?.round) suggestions.showLatest(latest.model);
    } finally {
      button.disabled = false;
      await refreshDevice();
    }
  };

  byId("keep", HTMLButtonElement).onclick = () => act(async () => {
    const text = field.value.trim();
    if (text === "") return;
    await storage.keep(text, Date.now() / 1000);
    field.value = "";
    typing.refresh();
    await refreshTexts();
    show("corrected", "Kept in this browser.");
    field.focus();
  });
  byId("clear", HTMLButtonElement).onclick = () => {
    field.value = "";
    typing.refresh();
    field.focus();
  };
  byId("compare", HTMLDetailsElement).addEventListener("toggle", () => typing.refresh());
  for (const each of document.querySelectorAll<HTMLInputElement>("input[name=model]")) {
    each.addEventListener("change", () => {
      which = each.value === "latest" ? "latest" : "shipped";
      typing.refresh();
    });
  }
  byId("delete-all", HTMLButtonElement).onclick = () => act(async () => {
    if (!(await sure("Delete all kept text? It is gone then. What left the device before stays away.", "Delete it"))) return;
    await storage.remove(null);
    await refreshTexts();
  });
  byId("turn-now", HTMLButtonElement).onclick = () => act(turn);
  byId("pause", HTMLButtonElement).onclick = () => act(async () => {
    const joined = await storage.setting<Joined>("joined");
    if (joined === null) return;
    await pause(storage, joined, byId("pause", HTMLButtonElement).getAttribute("aria-pressed") !== "true");
    await refreshDevice();
  });
  await joinForm(storage, (read) => act(async () => {
    const joined = read();
    await navigator.storage?.persist?.();
    await storage.set("joined", joined);
    await turn();
  }));
  policyForm(byId("policy", HTMLFormElement), (await storage.setting<string>("policy")) ?? "", async (text) => {
    await storage.set("policy", text);
    await refreshDevice();
  });
  byId("export", HTMLButtonElement).onclick = () => act(() => exportAll(storage));
  byId("erase", HTMLButtonElement).onclick = () => act(async () => {
    if (!(await sure("Erase everything: text, rules, and the record of what was spent?", "Erase it"))) return;
    clearTimeout(timer);
    await storage.erase();
    location.reload();
  });
  show("about", fact("The model", exported.privacy), fact("Words", `${exported.vocabulary.words.length}`));
  if (extension === null) void guarded(); // a package is replaced by its store alone
  await Promise.all([refreshTexts(), refreshDevice()]);
  if ((await storage.setting<Joined>("joined")) !== null) void act(turn);
}

async function exportAll(storage: Storage): Promise<void> {
  const [texts, policy, joined, record, journal] = await Promise.all([
    storage.texts(), storage.setting<string>("policy"), storage.setting<Joined>("joined"), storage.record.read(), storage.journal.read(),
  ]);
  const entries = (stored: typeof record): unknown => (stored === null ? null : Object.fromEntries(stored.entries));
  download("tacit-export.json", JSON.stringify({ texts, policy, joined, record: entries(record), journal: entries(journal) }, null, 1));
}

/** Asks in a dialog. False where it is closed otherwise. */
function sure(what: string, yes: string): Promise<boolean> {
  const dialog = byId("sure", HTMLDialogElement);
  show("sure-what", what);
  show("sure-yes", yes);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

/** Does it, and says in words what went wrong. */
async function act(does: () => Promise<void>): Promise<void> {
  const failure = byId("failure", HTMLElement);
  try {
    await does();
    failure.hidden = true;
  } catch (thrown) {
    failure.textContent = saidBy(thrown);
    failure.hidden = false;
  }
}

function route(): void {
  const wanted = VIEWS.find((each) => location.hash === `#${each}`) ?? "type";
  for (const each of VIEWS) byId(`view-${each}`, HTMLElement).hidden = each !== wanted;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#${wanted}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  window.scrollTo(0, 0);
}

window.addEventListener("hashchange", route);
route();
void act(start).then(() => document.documentElement.toggleAttribute("data-ready", true));
