/** What a device reads of a plan's recipe: the numbers that its privacy cost follows from. */

import { parse, type TomlTable, type TomlValue } from "smol-toml";

import { Refused } from "./errors.ts";

/** A section of TOML, with readers that say which key is wrong. */
export class Section {
  private readonly table: TomlTable;
  private readonly name: string;

  constructor(table: TomlTable, name: string) {
    this.table = table;
    this.name = name;
  }

  /** Of a whole text. Throws: Refused where it is no TOML. */
  static of(text: string): Section {
    try {
      return new Section(parse(text), "");
    } catch (thrown) {
      const said = thrown instanceof Error ? (thrown.message.split("\n")[0] ?? "") : "";
      throw new Refused(`the plan's recipe is no TOML: ${said}`);
    }
  }

  has(key: string): boolean {
    return this.table[key] !== undefined;
  }

  keys(): readonly string[] {
    return Object.keys(this.table);
  }

  section(key: string): Section | null {
    const value = this.table[key];
    if (value === undefined) return null;
    if (typeof value !== "object" || Array.isArray(value) || value instanceof Date)
      throw this.wrong(key, "is no section");
    return new Section(value, this.path(key));
  }

  required(key: string): Section {
    const found = this.section(key);
    if (found === null) throw this.wrong(key, "is missing");
    return found;
  }

  /** The sections of a list of them. */
  sections(key: string): readonly Section[] | null {
    const value = this.table[key];
    if (value === undefined) return null;
    if (!Array.isArray(value)) throw this.wrong(key, "is no list");
    return value.map((each, place) => {
      const name = `${key}[${place}]`;
      if (typeof each !== "object" || Array.isArray(each) || each instanceof Date) throw this.wrong(name, "is no section");
      return new Section(each, this.path(name));
    });
  }

  /** Throws: Refused for a key that is none of these. */
  refuseOthers(known: readonly string[]): void {
    const strange = this.keys().find((key) => !known.includes(key));
    if (strange !== undefined) throw this.wrong(strange, "is unknown to this device");
  }

  /** The values as they are. */
  plain(): Readonly<Record<string, unknown>> {
    return this.table;
  }

  number(key: string): number | null {
    const value = this.table[key];
    return value === undefined ? null : this.finite(key, value);
  }

  numbers(key: string): readonly number[] | null {
    const value = this.table[key];
    if (value === undefined) return null;
    if (!Array.isArray(value)) throw this.wrong(key, "is no list");
    return value.map((each) => this.finite(key, each));
  }

  whole(key: string): number | null {
    const value = this.number(key);
    if (value !== null && !Number.isSafeInteger(value)) throw this.wrong(key, "is no whole number");
    return value;
  }

  text(key: string): string | null {
    const value = this.table[key];
    if (value === undefined) return null;
    if (typeof value !== "string") throw this.wrong(key, "is no text");
    return value;
  }

  private finite(key: string, value: TomlValue): number {
    if (typeof value !== "number" || !Number.isFinite(value)) throw this.wrong(key, "is no number");
    return value;
  }

  private path(key: string): string {
    return this.name === "" ? key : `${this.name}.${key}`;
  }

  private wrong(key: string, what: string): Refused {
    return new Refused(`the plan's recipe cannot be followed: ${this.path(key)} ${what}.`);
  }
}
