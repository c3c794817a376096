/** Keys, suggestions and corrections for one text field. */

import { BOS, EOS, OOV } from "../train/ids.ts";
import { encode, idOf, type Vocabulary } from "../train/vocabulary.ts";
import { LINE_END, pieces } from "../train/words.ts";
import { correctionOf, type Shown } from "./decoder.ts";
import { element } from "./dom.ts";

/** Next words for a context of ids, and what was typed of the next one. */
export type Suggest = (ids: readonly number[], typed: string, count: number) => readonly Shown[];

export interface Keyboard {
  /** From here on words are suggested, and typed ones mended where they are not known. */
  know(vocabulary: Vocabulary, suggest: Suggest): void;
  /** Suggests anew, as for another model. */
  refresh(): void;
}

const SUGGESTED = 3;
const ASKED = 6; // more than are shown: the same word may come in two cases
const ROWS = [
  ["q", "w", "e", "r", "t", "y", "u", "i", "o", "p"],
  ["a", "s", "d", "f", "g", "h", "j", "k", "l"],
  ["shift", "z", "x", "c", "v", "b", "n", "m", "delete"],
  [",", "'", "space", ".", "?"],
] as const;
const NAMES: Readonly<Record<string, string>> = {
  shift: "Shift", delete: "Delete", space: "Space", ",": "Comma", "'": "Apostrophe", ".": "Full stop", "?": "Question mark",
};
const PARTIAL = /[\p{L}\p{M}\p{N}'’]+$/u;
const ENDS_WORD = /^[\s.,!?;:]$/u;

/** What stands before the caret: the sentence's beginning as ids, and the word that is being typed. */
export function contextOf(before: string, vocabulary: Vocabulary): { readonly ids: readonly number[]; readonly typed: string } {
  const typed = PARTIAL.exec(before)?.[0] ?? "";
  const whole = before.slice(0, before.length - typed.length);
  const cut = pieces(whole, vocabulary.writing);
  if (cut.length === 0 || cut.at(-1) === LINE_END) return { ids: [BOS], typed };
  const ids = encode(vocabulary, whole).at(-1) ?? [BOS, EOS];
  return { ids: ids.slice(0, -1), typed };
}

/** A keyboard for `field`; `says` hears of corrections. Until it knows words, keys write, and nothing is suggested or mended. */
export function keyboard(
  parts: { readonly field: HTMLTextAreaElement; readonly suggestions: HTMLElement; readonly keys: HTMLElement },
  says: (what: string) => void,
): Keyboard {
  const { field, suggestions, keys } = parts;
  let shifted = false;
  let known: { readonly vocabulary: Vocabulary; readonly suggest: Suggest } | null = null;
  let shown: readonly Shown[] = [];
  let shownFor = ""; // what stood before the caret
  let undo: { readonly end: number; readonly typed: string; readonly word: string } | null = null;
  const isKnown = (word: string): boolean => known === null || idOf(known.vocabulary, word) !== OOV;

  const refresh = (): void => {
    if (known === null) return;
    shownFor = field.value.slice(0, field.selectionStart);
    const { ids, typed } = contextOf(shownFor, known.vocabulary);
    shown = known.suggest(ids, typed, ASKED);
    const correction = correctionOf(typed, shown, isKnown);
    const words = [...new Set([...(correction === null ? [] : [correction]), ...shown.map((each) => each.word)])].slice(0, SUGGESTED);
    suggestions.replaceChildren(
      ...words.map((word) =>
        element("button", { type: "button", class: word === correction ? "will" : "", click: () => take(word) }, word),
      ),
    );
  };

  const partial = (): string => PARTIAL.exec(field.value.slice(0, field.selectionStart))?.[0] ?? "";

  const put = (text: string, from: number): void => {
    field.setRangeText(text, from, field.selectionEnd, "end");
    refresh();
  };

  const take = (word: string): void => {
    const typed = partial();
    undo = null;
    put(`${word} `, field.selectionStart - typed.length);
    field.focus();
  };

  /** A word is mended when it ends, and put back by the next Delete. True where the character is put already. */
  const mended = (character: string): boolean => {
    const typed = partial();
    const word = field.selectionStart === field.selectionEnd && ENDS_WORD.test(character) ? correctionOf(typed, shown, isKnown) : null;
    if (word === null) return false;
    put(word + character, field.selectionStart - typed.length);
    undo = { end: field.selectionStart, typed, word };
    says(`"${typed}" became "${word}"; Delete puts it back.`);
    return true;
  };

  const deleted = (): void => {
    const at = field.selectionStart;
    if (undo !== null && undo.end === at) {
      const ending = field.value.slice(at - 1, at);
      put(undo.typed + ending, at - undo.word.length - 1);
      says("");
    } else {
      put("", field.selectionEnd > at ? at : at - (Array.from(field.value.slice(0, at)).at(-1)?.length ?? 0));
    }
    undo = null;
  };

  const typed = (character: string): void => {
    if (mended(character)) return;
    undo = null;
    put(shifted ? character.toUpperCase() : character, field.selectionStart);
    if (shifted) setShift(false);
  };

  const setShift = (on: boolean): void => {
    shifted = on;
    for (const each of keys.querySelectorAll<HTMLButtonElement>("button[data-key]")) {
      const key = each.dataset["key"] ?? "";
      if (key === "shift") each.setAttribute("aria-pressed", String(on));
      else if (key.length === 1) each.textContent = on ? key.toUpperCase() : key;
    }
  };

  const press = (key: string): void => {
    if (key === "shift") setShift(!shifted);
    else if (key === "delete") deleted();
    else typed(key === "space" ? " " : key);
  };

  field.addEventListener("beforeinput", (event) => {
    if (event.inputType === "insertText" && event.data !== null && mended(event.data)) event.preventDefault();
    if (event.inputType === "deleteContentBackward" && undo !== null) {
      event.preventDefault();
      deleted();
    }
  });
  for (const event of ["input", "selectionchange"]) {
    field.addEventListener(event, () => {
      if (field.value.slice(0, field.selectionStart) !== shownFor) refresh(); // a key is both
    });
  }
  keys.replaceChildren(
    ...ROWS.map((row) =>
      element("div", { class: "keys-row" }, ...row.map((key) => {
        const wide = key === "space" ? "space" : key.length > 1 ? "wide" : "";
        const name = NAMES[key];
        const made = element(
          "button",
          { type: "button", "data-key": key, class: wide, ...(name === undefined ? {} : { "aria-label": name }), click: () => press(key) },
          key === "shift" ? "⇧" : key === "delete" ? "⌫" : key === "space" ? "space" : key,
        );
        made.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps its caret
        return made;
      })),
    ),
  );
  setShift(false);
  return {
    refresh,
    know(vocabulary, suggest) {
      known = { vocabulary, suggest };
      refresh();
    },
  };
}
