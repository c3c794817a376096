/** What the page shows of kept text, of what left, of the budget and of the last turn. */

import type { Turn } from "../core/device.ts";
import { UNREAD } from "../core/transport.ts";
import type { JournalLine, Overview } from "./device.ts";
import { byId, element, fact, show } from "./dom.ts";
import { bytes, kindInWords, number, planInWords, readersOf, time } from "./said.ts";
import type { KeptText } from "./storage.ts";

export type PastTurn = Turn & { readonly at: number };

export function showTexts(texts: readonly KeptText[], remove: (id: number) => void): void {
  const size = texts.reduce((sum, { text }) => sum + new TextEncoder().encode(text).length, 0);
  show("kept-count", texts.length === 0 ? "Nothing is kept." : `${texts.length} ${texts.length === 1 ? "message" : "messages"}, ${bytes(size)}.`);
  byId("delete-all", HTMLButtonElement).disabled = texts.length === 0;
  show(
    "kept-list",
    ...texts.toReversed().map(({ id, at, text }) =>
      element(
        "li",
        { class: "card" },
        element("p", {}, text),
        element(
          "div",
          { class: "row" },
          element("span", { class: "quiet" }, time(at)),
          element("button", { type: "button", class: "danger", "aria-label": `Delete the message of ${time(at)}`, click: () => remove(id) }, "Delete"),
        ),
      ),
    ),
  );
}

export function showJournal({ lines, losses }: Overview): void {
  show(
    "journal",
    lines.length === 0 ? element("p", {}, "Nothing has left this device.") : element("ol", { class: "cards" }, ...lines.map(journalCard)),
    ...losses.map(({ at, zcdp }) =>
      element("p", { class: "card" }, `On ${time(at)} this browser could not know what had been spent before: ${number(zcdp)} zCDP counts as spent.`),
    ),
  );
}

function journalCard({ participation, report, plan }: JournalLine): HTMLElement {
  const { run, round, kind, at, spent, task, operator } = participation;
  const keepers = plan?.aggregation.keepers ?? [];
  return element(
    "li",
    { class: "card" },
    element("h2", {}, `Round ${round} of ${run}`),
    element(
      "dl",
      {},
      fact("When", time(at)),
      fact("Task", `${kindInWords(kind)} (${kind}), ${task.slice(0, 12) || "unknown"}`),
      fact("What left", report === null ? "nothing is known of a report; the round stays spent" : bytes(report.bytes)),
      ...(report === null ? [] : [digestFact("SHA-256", report.sha256)]),
      fact("Who could read it", plan === null ? "the plan is not here any more" : readersOf(plan)),
      ...keepers.map((key) => digestFact("Decryptor", key)),
      fact("Cost", `${number(spent)} zCDP, of the whole run so far`),
      fact("Receipt", report?.received === true ? "signed by the operator" : "none came"),
      ...(report?.why ? [fact("It said nothing", report.why)] : []),
      digestFact("Operator", operator),
    ),
    plan === null ? null : element("details", {}, element("summary", {}, "The plan in words"), element("ul", {}, ...planInWords(plan).map((each) => element("li", {}, each)))),
  );
}

function digestFact(name: string, digits: string): HTMLElement {
  const made = fact(name, digits);
  made.querySelector("dd")?.classList.add("digest");
  return made;
}

export function showBudget({ policy, spent, spentWeek, losses }: Overview): void {
  show(
    "budget",
    ...budget("budget-life", "Privacy budget for life", spent, policy.budget_zcdp),
    ...(policy.budget_zcdp_week === Infinity ? [] : budget("budget-week", "Privacy budget of these seven days", spentWeek, policy.budget_zcdp_week)),
    losses.length === 0 ? null : element("p", { class: "quiet" }, "Part of it was charged because this browser lost, or never had, a record of what was spent."),
  );
}

function budget(id: string, name: string, spent: number, all: number): readonly HTMLElement[] {
  const left = all === Infinity ? "no limit" : `${number(Math.max(0, all - spent))} of ${number(all)} left`;
  const words = element("p", {}, `${number(spent)} zCDP spent, ${left}.`);
  if (all === Infinity || all === 0) return [element("h2", {}, name), words];
  const meter = element("meter", { id, min: "0", max: String(all), value: String(Math.min(spent, all)), "aria-label": name });
  return [element("h2", {}, name), meter, words];
}

const WHAT: Readonly<Record<Turn["what"], string>> = {
  "not eligible": "The device did not ask.",
  idle: "The device asked.",
  refused: "The device refused.",
  unanswered: "No answer came that could be used.",
  reported: "The device took part.",
  lost: "The device took part, and no receipt came. The round stays spent.",
};

/** `unread`: what to say where no answer could be read. */
export function showTurn(turn: PastTurn | null, nextInSeconds: number | null, unread: string | null): void {
  const next = nextInSeconds === null ? null : `It asks again in about ${spoken(nextInSeconds)}, while this page is open.`;
  show(
    "turn",
    element("h2", {}, "The last turn"),
    turn === null
      ? element("p", {}, "There was none yet.")
      : element("p", {}, `${time(turn.at)}: ${WHAT[turn.what]} ${sentence(turn.why)}`),
    turn?.why.startsWith(UNREAD) !== true || unread === null ? null : element("p", {}, unread),
    next === null ? null : element("p", { class: "quiet" }, next),
  );
}

function sentence(why: string): string {
  return why === "" ? "" : (why[0] ?? "").toUpperCase() + why.slice(1);
}

function spoken(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} minutes` : `${Math.round(seconds / 3600)} hours`;
}
