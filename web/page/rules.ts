/** The owner's policy as a form, and as the text of policy.toml, whose reader says what is wrong. */

import { DEFAULT_POLICY, KINDS, readPolicy, type Policy } from "../core/policy.ts";
import { saidBy } from "../core/errors.ts";
import { COUNTED } from "../answers/answered.ts";
import { element } from "./dom.ts";
import { kindInWords } from "./said.ts";

type Key = keyof Policy;

/** The rules that have a field of their own; all others are in the text below. */
const FIELDS: readonly (readonly [Key, string, string])[] = [
  ["budget_zcdp", "Privacy budget for life", "zCDP of everything that this device ever takes part in; inf: no limit"],
  ["budget_zcdp_week", "Privacy budget a week", "of the runs of any seven days, each counted whole; inf: no limit"],
  ["largest_epsilon", "Largest epsilon of a plan", "at the plan's delta"],
  ["smallest_cohort", "Fewest reports in a sum", "among so many you are one"],
  ["hours_apart", "Hours between two rounds", "in anything"],
];
const SUMS: readonly (readonly [string, string])[] = [
  ["plain", "in the clear: the operator sees your report"],
  ["encoded", "as whole numbers: the operator sees your report"],
  ["sealed", "sealed: the operator sees the sum alone"],
];
/** What the page does of each kind of task, for its owner. */
const KIND_CHOICES: readonly (readonly [string, string])[] = KINDS.map((kind) => {
  if (kind !== "train" && !COUNTED.includes(kind)) return [kind, `${kindInWords(kind)} (this page does no such task)`];
  return [kind, kind === "evaluate" ? `${kindInWords(kind)} (by text that "split" keeps for it)` : kindInWords(kind)];
});

/** Fills `form` with a policy's text. `save` gets the new text, which has been read once; it may throw. */
export function policyForm(form: HTMLFormElement, text: string, save: (text: string) => Promise<void>): void {
  let policy = DEFAULT_POLICY;
  try {
    policy = readPolicy(text).policy;
  } catch {
    // What is wrong with it is said when it is saved again; until then no turn is taken.
  }
  const answer = element("p", { role: "status", id: "policy-answer" });
  const whole = element("textarea", { id: "policy-text", class: "code", rows: "6", spellcheck: "false" });
  whole.value = text;
  form.replaceChildren(
    ...FIELDS.flatMap(([key, name, about]) => [
      element("label", { for: `rule-${key}` }, name),
      element("input", { id: `rule-${key}`, inputmode: "decimal", value: written(policy[key]), "aria-describedby": `about-${key}`, autocomplete: "off" }),
      element("p", { id: `about-${key}`, class: "quiet" }, about),
    ]),
    choices("aggregation", "Reports may leave", SUMS, policy.aggregation),
    choices("kinds", "Tasks that you take", KIND_CHOICES, policy.kinds),
    element("details", {}, element("summary", {}, "All rules as text (policy.toml)"), element("label", { for: "policy-text" }, "policy.toml"), whole),
    answer,
    element("p", {}, element("button", { type: "submit", class: "main" }, "Save your rules")),
  );
  form.onsubmit = (event) => {
    event.preventDefault();
    const said = whole.value === text ? withFields(text, form) : whole.value;
    try {
      readPolicy(said);
    } catch (thrown) {
      answer.textContent = `Not saved: ${saidBy(thrown)}`;
      return;
    }
    save(said).then(
      () => {
        policyForm(form, said, save);
        const saved = document.getElementById("policy-answer");
        if (saved !== null) saved.textContent = "Saved. They hold from the next turn on.";
      },
      (thrown: unknown) => (answer.textContent = `Not saved: ${saidBy(thrown)}`),
    );
  };
}

function choices(key: Key, name: string, all: readonly (readonly [string, string])[], chosen: readonly string[]): HTMLElement {
  return element(
    "fieldset",
    {},
    element("legend", {}, name),
    ...all.map(([value, about]) =>
      element("label", {}, element("input", { type: "checkbox", name: key, value, checked: chosen.includes(value) }), about),
    ),
  );
}

/** The text with the fields' values: their lines first, whatever else it has behind. */
function withFields(text: string, form: HTMLFormElement): string {
  const data = new FormData(form);
  const lists = (["aggregation", "kinds"] as const).map((key) => [key, JSON.stringify(data.getAll(key))] as const);
  const numbers = FIELDS.map(([key]) => [key, field(form, key)] as const);
  const ours = [...numbers, ...lists];
  const others = text.split("\n").filter((line) => !ours.some(([key]) => new RegExp(`^\\s*${key}\\s*=`).test(line)) && line.trim() !== "");
  return [...ours.map(([key, value]) => `${key} = ${value}`), ...others].join("\n") + "\n";
}

function field(form: HTMLFormElement, key: Key): string {
  const found = form.querySelector<HTMLInputElement>(`#rule-${key}`);
  return found?.value.trim() ?? "";
}

function written(value: Policy[Key]): string {
  return value === Infinity ? "inf" : String(value);
}
