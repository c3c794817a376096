import { describe, expect, test } from "vitest";

import { checkIn, readAnswer, readPlan, readReceipt, readSeparation, readTask } from "../core/documents.ts";
import { Malformed } from "../core/errors.ts";
import { parseJson, textOf, type Json } from "../core/json.ts";
import { planSaid, taskSaid } from "./plans.ts";
import { seeded } from "./seeded.ts";

const SAID = '{"rounds": 5, "timer_seconds": null, "clock": "start"}';

function with_(more: string): string {
  return SAID.slice(0, -1) + ", " + more + "}";
}

test("the page's separation, with keys of a later version", () => {
  const kept = { rounds: 5, timer_seconds: null, clock: "start" };
  expect(readSeparation(SAID)).toEqual(kept);
  expect(readSeparation(with_('"weekdays": [6, 7]'))).toEqual(kept);
  expect(() => readSeparation(with_('"weekdays": [6, 7], "critical": ["weekdays"]'))).toThrow(
    "its key 'weekdays' is critical, and this version of tacit does not know it; a later one may.",
  );
});

test.each([
  ["critical of a known key", with_('"critical": ["rounds"]'), "a key of version 2"],
  ["critical twice", with_('"x": 1, "critical": ["x", "x"]'), "names a key twice"],
  ["critical of no key", with_('"critical": ["x"]'), "'x' is critical"],
  ["critical of itself", with_('"critical": ["critical"]'), "a key of version 2"],
  ["critical null", with_('"critical": null'), "critical: it should be a list"],
  ["33 critical", with_(`"critical": [${Array.from({ length: 33 }, (_, at) => `"k${at}"`).join()}]`), "33 entries"],
  ["a key twice", '{"rounds": 5, "rounds": 5, "timer_seconds": null, "clock": "start"}', "'rounds' twice"],
  ["a key twice by an escape", with_('"r\\u006funds": 5'), "'rounds' twice"],
  ["a key twice below an unknown one", with_('"x": [{"a": 1, "a": 2}]'), "'a' twice"],
  ["a real for an integer", SAID.replace("5", "5.0"), "rounds: it should be a whole number"],
  ["a boolean for an integer", SAID.replace("5", "true"), "rounds: it should be a whole number"],
  ["an integer beyond its bounds", SAID.replace("5", "9007199254740993"), "rounds: it should be from 1 to 1000000000"],
  ["below its bounds", SAID.replace("5", "0"), "rounds"],
  ["NaN", with_('"x": NaN'), "no JSON"],
  ["infinity", with_('"x": 1e400'), "no finite number"],
  ["301 digits", with_(`"x": ${"1".repeat(301)}`), "301 digits"],
  ["half a pair", with_('"x": "\\ud800"'), "surrogate"],
  ["nested too deep", with_(`"x": ${"[".repeat(65)}${"]".repeat(65)}`), "nested too deep"],
  ["another clock", SAID.replace("start", "noon"), "clock: it should be start or finish"],
  ["a missing key", '{"rounds": 5, "timer_seconds": null}', "clock: it is missing"],
  ["a list", "[]", "it should be an object"],
  ["something behind it", SAID + "x", "follows its end"],
  ["a control character", with_('"x": "a\tb"'), "control character"],
  ["nothing", "", "a value is missing"],
  ["a space that is none of JSON's", "\u00a0" + SAID, "a value is missing"],
])("refused: %s", (_, said, because) => {
  expect(() => readSeparation(said)).toThrow(Malformed);
  expect(() => readSeparation(said)).toThrow(because);
});

test.each([
  ["300 digits under an unknown key", with_(`"x": ${"1".repeat(300)}`)],
  ["64 deep below the document", with_(`"x": ${"[".repeat(64)}${"]".repeat(64)}`)],
  ["a critical of an object under an unknown key", with_('"x": {"y": 1, "critical": ["y"]}')],
  ["an empty critical", with_('"critical": []')],
  ["an integer for a real", SAID.replace("null", "10")],
  ["a prototype's name", with_('"__proto__": {"rounds": 7}, "constructor": 1')],
])("read: %s", (_, said) => {
  expect(readSeparation(said).rounds).toBe(5);
});

test("what is no UTF-8, and a byte order mark, are refused", () => {
  expect(() => textOf(Uint8Array.of(0x22, 0xff, 0x22))).toThrow(Malformed);
  expect(() => parseJson(textOf(Uint8Array.of(0xef, 0xbb, 0xbf, 0x31)))).toThrow(Malformed);
});

describe("JSON by a seed", () => {
  const draw = seeded(37);
  function made(depth: number): unknown {
    const kind = draw.below(depth > 3 ? 5 : 7);
    if (kind === 0) return null;
    if (kind === 1) return draw.below(2) === 1;
    if (kind === 2) return draw.below(1000) - 500;
    if (kind === 3) return (draw.unit() - 0.5) * 10 ** draw.below(300);
    if (kind === 4)
      return Array.from({ length: draw.below(6) }, () => String.fromCodePoint(draw.below(0xd7ff))).join("");
    const many = draw.below(4);
    if (kind === 5) return Array.from({ length: many }, () => made(depth + 1));
    return Object.fromEntries(Array.from({ length: many }, (_, place) => [`k${place}"\\`, made(depth + 1)]));
  }
  function plain(value: Json): unknown {
    if (typeof value === "bigint") return Number(value);
    if (value instanceof Map) return Object.fromEntries([...value].map(([key, each]) => [key, plain(each as Json)]));
    if (Array.isArray(value)) return value.map(plain);
    return value;
  }
  test("is what JSON.parse says", () => {
    for (let round = 0; round < 300; round++) {
      const text = JSON.stringify(made(0), null, draw.below(3));
      expect(plain(parseJson(text))).toEqual(JSON.parse(text));
    }
  });
  test("and where JSON.parse throws, this does", () => {
    for (let round = 0; round < 2000; round++) {
      const whole = JSON.stringify(made(0));
      const place = draw.below(whole.length + 1);
      const text = whole.slice(0, place) + '{}[]",:\\01e.-tn '[draw.below(16)] + whole.slice(place + draw.below(2));
      let wanted: unknown;
      try {
        wanted = JSON.parse(text);
      } catch {
        expect(() => parseJson(text)).toThrow(Malformed);
        continue;
      }
      try {
        expect(plain(parseJson(text))).toEqual(wanted);
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(Malformed); // a key twice, infinity
        expect((thrown as Malformed).message).toMatch(/twice|finite/);
      }
    }
  });
});

test("answers, plans, tasks and receipts", () => {
  const away = readAnswer('{"answer": "come_back", "after_s": 1, "before_s": 2.5, "later": {}}');
  expect(away).toEqual({ answer: "come_back", after_s: 1, before_s: 2.5 });
  expect(() => readAnswer('{"answer": "perhaps"}')).toThrow("'perhaps' is unknown here");
  expect(readPlan(planSaid({})).privacy.kind).toBe("training");
  expect(readTask(taskSaid({})).asks.kind).toBe("train");
  expect(() => readPlan(planSaid({ version: 3 }))).toThrow("version");
  expect(() => readTask(taskSaid({ asks: { kind: "dance" } }))).toThrow("'dance' is unknown here");
  const receipt = { assignment: "01".repeat(16), sha256: "ab".repeat(32), received: true };
  expect(readReceipt(JSON.stringify(receipt))).toEqual(receipt);
  expect(() => readReceipt(JSON.stringify({ ...receipt, received: false }))).toThrow("received");
});

test("a check-in says what the page says, and no more", () => {
  expect(JSON.parse(checkIn("default", { train: 1 }, null))).toEqual({
    version: 2,
    population: "default",
    versions: { train: 1 },
    token: null,
  });
});
