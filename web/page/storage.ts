/**
 * The record on IndexedDB, and what the page itself keeps: text, settings, the shared model of the last round.
 *
 * Each write of the record has strict durability: it is on disk before the promise resolves. A database that was put
 * back alone is told by a mark, which another database knows; a copied profile is not told from its original by anything
 * in it, and an evicted one is empty: then the device waits (docs/device.md, "When its state is lost").
 */

import { toHex } from "../core/bytes.ts";
import { CannotWork, saidBy } from "../core/errors.ts";
import type { Store, Stored } from "../core/record.ts";

const LOCK = "tacit device";
const MARKS = "tacit-marks";
const PAGE = "tacit-page";
const RECORDS = ["tacit-record", "tacit-journal"] as const;
const TABLES = ["entries", "about"] as const;
const STRICT: IDBTransactionOptions = { durability: "strict" };

/** What somebody typed and kept. */
export interface KeptText {
  readonly id: number;
  readonly at: number; // Unix seconds
  readonly text: string;
}

/** Everything that this origin keeps. */
export interface Storage {
  readonly record: Store;
  readonly journal: Store;
  texts(): Promise<readonly KeptText[]>;
  keep(text: string, at: number): Promise<void>;
  /** Removes one text; null: all. */
  remove(id: number | null): Promise<void>;
  setting<T>(key: string): Promise<T | null>;
  set(key: string, value: unknown): Promise<void>;
  /** Removes all of it: text, settings, record and journal. What left the device cannot be called back. */
  erase(): Promise<void>;
}

/** Opens what is there, or makes it. Throws: CannotWork where the browser keeps nothing, as in some private windows. */
export async function openStorage(): Promise<Storage> {
  const page = await opened(PAGE, (database) => {
    database.createObjectStore("texts", { keyPath: "id", autoIncrement: true });
    database.createObjectStore("settings");
  });
  const marks = await opened(MARKS, (database) => database.createObjectStore("marks"));
  const [record, journal] = await Promise.all(RECORDS.map((name) => recordStore(name, marks)));
  if (record === undefined || journal === undefined) throw new CannotWork("this browser keeps no record.");
  return {
    record: record.store,
    journal: journal.store,
    texts: () => all<KeptText>(page, "texts"),
    keep: (text, at) => changed(page, ["texts"], (tables) => tables("texts").add({ text, at })),
    remove: (id) => changed(page, ["texts"], (tables) => (id === null ? tables("texts").clear() : tables("texts").delete(id))),
    setting: async <T>(key: string) => ((await one<T>(page, "settings", key)) ?? null),
    set: (key, value) => changed(page, ["settings"], (tables) => tables("settings").put(value, key)),
    erase: async () => {
      for (const each of [page, marks, record.database, journal.database]) each.close();
      await Promise.all([PAGE, MARKS, ...RECORDS].map((name) => done(indexedDB.deleteDatabase(name))));
    },
  };
}

/** One turn at a time, in all tabs together. null where another tab has it. */
export function underLock<T>(turn: () => Promise<T>): Promise<T | null> {
  return navigator.locks.request(LOCK, { ifAvailable: true }, (lock) => (lock === null ? null : turn()));
}

/** A store that is read and never written: a view of a record that another tab may be writing to. */
export function viewOf(store: Store): Store {
  return { read: () => store.read(), write: async () => {} };
}

async function recordStore(name: string, marks: IDBDatabase): Promise<{ readonly store: Store; readonly database: IDBDatabase }> {
  const database = await opened(name, (made) => TABLES.forEach((table) => made.createObjectStore(table)));
  const store: Store = {
    async read(): Promise<Stored | null> {
      const reading = database.transaction(TABLES, "readonly");
      const [keys, values, generation, mark] = await Promise.all([
        done(reading.objectStore("entries").getAllKeys()),
        done(reading.objectStore("entries").getAll()),
        done<number | undefined>(reading.objectStore("about").get("generation")),
        done<string | undefined>(reading.objectStore("about").get("mark")),
      ]);
      const known = await one<readonly string[]>(marks, "marks", name);
      if (generation === undefined || mark === undefined) {
        // A mark of a database that is empty: it was removed, or evicted alone.
        return known === undefined ? null : { entries: new Map(), generation: 0, untouched: false };
      }
      const entries = new Map(keys.map((key, at) => [String(key), String(values[at])]));
      return { entries, generation, untouched: known?.includes(mark) ?? false };
    },
    async write(changes, generation) {
      const mark = toHex(crypto.getRandomValues(new Uint8Array(16)));
      const before = await one<string>(database, "about", "mark");
      // Told beforehand, so that whichever of the two is found after a crash is the one that was written last.
      await changed(marks, ["marks"], (tables) => tables("marks").put(before === undefined ? [mark] : [before, mark], name));
      const writing = database.transaction(TABLES, "readwrite", STRICT);
      const about = writing.objectStore("about");
      const there = (await done<number | undefined>(about.get("generation"))) ?? 0;
      if (there !== generation - 1) {
        writing.abort();
        throw new Error("another tab wrote to it meanwhile; close the others and load this one again");
      }
      const entries = writing.objectStore("entries");
      for (const [key, value] of changes) {
        if (value === null) entries.delete(key);
        else entries.put(value, key);
      }
      about.put(generation, "generation");
      about.put(mark, "mark");
      await completed(writing);
      await changed(marks, ["marks"], (tables) => tables("marks").put([mark], name));
    },
  };
  return { store, database };
}

function opened(name: string, made: (database: IDBDatabase) => void): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const refused = (why: unknown): void => reject(new CannotWork(`this browser keeps nothing for this page (${saidBy(why)}); leave the private window, or make room.`));
    let request: IDBOpenDBRequest;
    try {
      request = indexedDB.open(name, 1);
    } catch (thrown) {
      refused(thrown);
      return;
    }
    request.onupgradeneeded = () => made(request.result);
    request.onsuccess = () => {
      request.result.onversionchange = () => request.result.close(); // another tab erases
      resolve(request.result);
    };
    request.onerror = () => refused(request.error);
  });
}

async function changed(
  database: IDBDatabase,
  names: readonly string[],
  change: (tables: (name: string) => IDBObjectStore) => void,
): Promise<void> {
  const writing = database.transaction(names, "readwrite", STRICT);
  change((name) => writing.objectStore(name));
  await completed(writing);
}

function one<T>(database: IDBDatabase, table: string, key: string): Promise<T | undefined> {
  return done<T | undefined>(database.transaction(table).objectStore(table).get(key));
}

function all<T>(database: IDBDatabase, table: string): Promise<readonly T[]> {
  return done<T[]>(database.transaction(table).objectStore(table).getAll());
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the browser did not say why"));
  });
}

function completed(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error("the browser gave the change up"));
  });
}
