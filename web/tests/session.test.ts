import { describe, expect, test } from "vitest";

import type { Came } from "../core/asks.ts";
import { waitAfter } from "../core/device.ts";
import type { Signed } from "../core/documents.ts";
import { handOverLine, planLine, tokenKeyLine } from "../core/log.ts";
import type { Policy } from "../core/policy.ts";
import { DeviceRecord, MemoryStore } from "../core/record.ts";
import type { Handler, Training } from "../core/report.ts";
import { readTensor, tensorFile } from "../core/safetensors.ts";
import { digest } from "../core/signing.ts";
import { newOperator, newSigner, type Operator } from "./operator.ts";
import { planSaid, RECIPE, TRAINING, taskSaid } from "./plans.ts";
import {
  ASSIGNMENT,
  body,
  BUDGETS,
  deviceOf,
  HALF,
  json,
  newRecord,
  OPENS,
  played,
  problem,
  server,
  turned,
} from "./turns.ts";
import type { Changed, Seen, Settings, Time } from "./turns.ts";

describe("a turn", () => {
  test("takes part: the page's requests in the page's order, and a clipped update", async () => {
    const record = await newRecord();
    const seen = await turned({}, { record });
    expect(seen.turn).toEqual({
      what: "reported",
      why: "the operator signed for the report.",
      wait: { after: 1, before: 5 },
    });
    expect(seen.order).toEqual([
      "POST check-in",
      "GET plans",
      "GET log",
      "GET models",
      "work",
      "work",
      "pause",
      "POST reports",
    ]);
    const update = readTensor(body(seen), "update", "F32", 3);
    expect(Math.hypot(...update)).toBeCloseTo(1, 6);
    expect(update[0]).toBeCloseTo(0.6, 6);
    const [part] = record.participations();
    expect(part).toMatchObject({ run: "es", round: 0, at: OPENS + 1, opens: OPENS });
    expect(part?.spent).toBeCloseTo((1 * (1 + 0.25 + 0.375 ** 2 + 0.0625 + 0.125 ** 2 + 0.01)) / 98, 12);
    expect(record.reports()[0]).toMatchObject({ received: true, why: null, bytes: 532 });
    expect(record.spent(OPENS).zcdp).toBe(part?.spent);
  });

  test("says nothing of its text but in the report, whose length is always the same", async () => {
    const failing: Training = {
      seconds: () => 0,
      train: async () => {
        throw new Error("no text");
      },
    };
    const endless: Training = {
      seconds: () => 0,
      train: async () => ({ update: Float32Array.of(NaN, 0, 0), loss: 1 }),
    };
    const short: Training = { seconds: () => 0, train: async () => ({ update: Float32Array.of(1), loss: 1 }) };
    const usual = await turned();
    for (const training of [failing, endless, short]) {
      const seen = await turned({}, { training });
      expect(seen.turn.what).toBe("reported");
      expect(seen.turn.why).toContain("nothing to say");
      expect(seen.order).toEqual(usual.order);
      expect(body(seen).length).toBe(body(usual).length);
      expect(readTensor(body(seen), "update", "F32", 3)).toEqual(new Float32Array(3));
    }
  });

  test("reads text only after the participation is durable", async () => {
    const record = await newRecord();
    let before = -1;
    const training: Training = {
      seconds: () => 0,
      train: async () => {
        before = record.participations().length;
        return { update: new Float32Array(3), loss: 0 };
      },
    };
    await turned({}, { record, training });
    expect(before).toBe(1);
  });

  test("a clip estimate and a loss stand beside the update", async () => {
    const recipe = RECIPE + "\n[clipping]\ninitial = 1.0\n[training_loss]\nbound = 8.0\n";
    const asks = { ...JSON.parse(taskSaid({})).asks, clip_estimate: 0.5, loss_bound: 8 };
    const seen = await turned({ plan: { recipe }, task: { asks } });
    const text = new TextDecoder().decode(body(seen));
    expect(JSON.parse(text.slice(8, 520)).__metadata__).toEqual({
      assignment: ASSIGNMENT,
      usable: "true",
      short: "false",
      bounded_loss: "-2",
    });
  });
});

describe("the same bytes until a receipt", () => {
  const answers: readonly [string, (server: Operator) => Promise<Came>][] = [
    ["no answer", async () => ({ kind: "failed", why: "lost" })],
    ["busy", async () => problem(503, "tacit:busy", { "retry-after": "7" })],
    ["too slow", async () => problem(408, "tacit:too-slow")],
    ["no receipt", async () => json({ hello: 1 })],
    [
      "a receipt of another",
      async (operator) =>
        json(
          await operator.signed(
            "receipt",
            JSON.stringify({ assignment: ASSIGNMENT, sha256: "00".repeat(32), received: true }),
          ),
        ),
    ],
    ["a receipt that nobody signed", async () => json({ document: "{}", signature: "00".repeat(64) })],
  ];
  test.each(answers)("%s, then a receipt", async (_, wrong) => {
    const operator = await newOperator();
    let times = 0;
    const seen = await turned({
      operator,
      on: (asks, usual) =>
        asks.method === "POST" && asks.path.startsWith("/v1/reports") && times++ < 3 ? wrong(operator) : usual(),
    });
    expect(seen.turn.what).toBe("reported");
    const sent = seen.requests.filter(({ path, method }) => method === "POST" && path.startsWith("/v1/reports"));
    expect(sent.length).toBe(4);
    for (const each of sent) {
      expect(each.body).toEqual(sent[0]?.body);
      expect(each.headers).toEqual(sent[0]?.headers);
    }
  });
  test.each([401, 409, 410, 422])("status %i: lost, and it stays spent", async (status) => {
    const record = await newRecord();
    const seen = await turned(
      {
        on: (asks, usual) =>
          asks.path.startsWith("/v1/reports") ? Promise.resolve(problem(status, "tacit:late")) : usual(),
      },
      { record },
    );
    expect(seen.turn.what).toBe("lost");
    expect(record.participations().length).toBe(1);
  });
  test("until the round ends", async () => {
    const seen = await turned({
      on: (asks, usual) =>
        asks.path.startsWith("/v1/reports") ? Promise.resolve({ kind: "failed", why: "away" }) : usual(),
    });
    expect(seen.turn).toMatchObject({ what: "lost", why: "away" });
  });
});

const matrix = {
  kind: "dense",
  rounds: 12,
  bands: 12,
  sha256: "55".repeat(32),
  bytes: 9,
  path: "/v1/models/" + "55".repeat(32),
};
const refusals: readonly [string, Changed, Settings, string][] = [
  ["another population", { plan: { population: "others" } }, {}, "population"],
  ["other words", { plan: { vocabulary: "12".repeat(32) } }, {}, "other words"],
  ["a run that is not the plan's", { task: { run: "fr" } }, {}, "another run"],
  ["a round beyond the plan", { task: { round: 12 } }, {}, "12 rounds"],
  ["attestation of the server", { plan: { attestation: { devices: "none", server: "tpm" } } }, {}, "attestation"],
  ["a plan that is not in the log", { lines: () => [planLine("77".repeat(32))] }, {}, "not in the operator's log"],
  [
    "a plan with a critical key",
    { plan: { separation: { rounds: 4, timer_seconds: null, clock: "start", weekdays: [6], critical: ["weekdays"] } } },
    {},
    "its key 'weekdays' is critical",
  ],
  ["a plan that claims too little", { plan: { privacy: { ...TRAINING, zcdp: 0.01 } } }, {}, "claims"],
  ["a larger clip norm", { task: { asks: { ...JSON.parse(taskSaid({})).asks, clip_norm: 1.1 } } }, {}, "clip norm"],
  [
    "a loss that the plan has not",
    { task: { asks: { ...JSON.parse(taskSaid({})).asks, loss_bound: 3 } } },
    {},
    "bounds losses",
  ],
  [
    "sums in the clear of a plan that encodes",
    { plan: { aggregation: { ...JSON.parse(planSaid({})).aggregation, kind: "encoded" } } },
    {},
    "another way",
  ],
  [
    "a matrix with too many patterns",
    { plan: { privacy: { ...TRAINING, mechanism: "dense", matrix: { ...matrix, bands: 11 } } } },
    {},
    "number of bands",
  ],
  ["a round that is over", {}, { clock: { now: OPENS + 700 } }, "over"],
  ["a round far ahead", { task: { opens: OPENS + 3600, deadline: OPENS + 4000 } }, {}, "a clock is wrong"],
  ["a round that takes days", { task: { deadline: OPENS + 90_000 } }, {}, "longest_round_hours"],
  [
    "a model that is not finite",
    { model: tensorFile("model", Float32Array.of(1, NaN, 3), {}) },
    {},
    "number that is none",
  ],
  ["a model of another size", { model: tensorFile("model", Float32Array.of(1, 2), {}) }, {}, "shape"],
  ["the owner's cohort", {}, { policy: { smallest_cohort: 500 } }, "smallest_cohort"],
  ["the owner's aggregation", {}, { policy: { aggregation: ["sealed"] } }, "aggregation"],
  ["the owner's zCDP", {}, { policy: { largest_zcdp: 0.01 } }, "largest_zcdp"],
  ["the owner's epsilon", {}, { policy: { largest_epsilon: 0.1 } }, "largest_epsilon"],
  ["the owner's delta", {}, { policy: { largest_delta: 1e-6 } }, "largest_delta"],
  ["the owner's noise", {}, { policy: { smallest_noise_multiplier: 8 } }, "smallest_noise_multiplier"],
  ["the owner's budget", {}, { policy: { budget_zcdp: 0.001 } }, "budget_zcdp"],
  ["the owner's week", {}, { policy: { budget_zcdp_week: 0.001 } }, "budget_zcdp_week"],
  ["the owner's model", {}, { policy: { largest_model_mb: 0.0001 } }, "largest_model_mb"],
];

test.each(refusals)("refused, and the place given back: %s", async (_, changed, settings, because) => {
  const record = await newRecord();
  const seen = await turned(changed, { ...settings, record });
  expect(seen.turn.why).toContain(because);
  expect(seen.turn.what).toBe("refused");
  expect(seen.order.slice(0, 3)).toEqual(["POST check-in", "GET plans", "GET log"]);
  expect(seen.order.at(-1)).toBe("DELETE reports");
  expect(seen.order).not.toContain("POST reports");
  expect(record.participations()).toEqual([]);
});

test.each([
  ["it seals what is not encoded", { sealed: "00" }],
  ["its deadline is not after it opens", { deadline: OPENS }],
  ["it should be from 0", { round: -1 }],
])("a task that contradicts itself: %s", async (because, task) => {
  const seen = await turned({ task });
  expect(seen.turn.why).toContain(because);
  expect(seen.order).toEqual(["POST check-in", "DELETE reports"]);
});

describe("the record", () => {
  async function again(
    task: Record<string, unknown>,
    settings: { later?: number; plan?: Record<string, unknown>; policy?: Partial<Policy> } = {},
  ): Promise<Seen> {
    const [operator, record, clock] = [await newOperator(), await newRecord(), { now: OPENS + 1 }];
    const shared = { record, clock, ...(settings.policy ? { policy: settings.policy } : {}) };
    const plan = settings.plan ?? {};
    const first = await turned({ operator, plan }, shared);
    expect(first.turn.what).toBe("reported");
    clock.now += settings.later ?? 100;
    return turned({ operator, plan, task }, shared);
  }
  test("refuses a round that is too near, and another attempt", async () => {
    expect((await again({ round: 3 })).turn.why).toContain("less than 4 rounds");
    expect((await again({ attempt: 1, task: "34".repeat(16) })).turn.why).toContain("another attempt");
    expect((await again({ round: 4 })).turn.what).toBe("reported");
    expect((await again({ round: 4 }, { policy: { rounds_apart: 6 } })).turn.why).toContain("less than 6 rounds");
    expect((await again({ round: 4 }, { policy: { hours_apart: 1 } })).turn.why).toContain("hours_apart");
  });
  test("refuses after the clock was set back", async () => {
    expect((await again({ round: 8 }, { later: -50 })).turn.why).toContain("set back");
  });
  test("keeps a timer by both clocks", async () => {
    const plan = { separation: { rounds: 4, timer_seconds: 300, clock: "start" } };
    const late = { round: 4, opens: OPENS + 300, deadline: OPENS + 900 };
    expect((await again(late, { plan, later: 200 })).turn.why).toContain("timer"); // the device's clock
    expect((await again({ ...late, opens: OPENS + 299 }, { plan, later: 400 })).turn.why).toContain("timer");
    expect((await again(late, { plan, later: 400 })).turn.what).toBe("reported");
  });
  test("refuses another plan of the same run", async () => {
    const [operator, record] = [await newOperator(), await newRecord()];
    await turned({ operator }, { record });
    const plan = { code: "99".repeat(32) };
    const before = planLine(await digest(planSaid({})));
    const changed = { operator, plan, task: { round: 8 }, lines: (each: string) => [before, planLine(each)] };
    expect((await turned(changed, { record, clock: { now: OPENS + 50 } })).turn.why).toContain("another plan");
  });
  test("refuses more participations than the plan allows", async () => {
    const [operator, record, clock] = [await newOperator(), await newRecord(), { now: OPENS + 1 }];
    const plan = {
      separation: { rounds: 1, timer_seconds: null, clock: "start" },
      privacy: { ...TRAINING, zcdp: 1, max_participations: 2 },
    };
    for (const round of [0, 1])
      expect((await turned({ operator, plan, task: { round } }, { record, clock })).turn.what).toBe("reported");
    expect((await turned({ operator, plan, task: { round: 2 } }, { record, clock })).turn.why).toContain(
      "as often as its plan allows",
    );
  });
  test("with a timer alone it stops where the plan's promise is spent", async () => {
    const [operator, record, clock] = [await newOperator(), await newRecord(), { now: OPENS + 1 }];
    const plan = {
      separation: { rounds: null, timer_seconds: 1, clock: "start" },
      privacy: { ...TRAINING, zcdp: 0.03 },
    };
    expect((await turned({ operator, plan, task: { round: 0 } }, { record, clock })).turn.what).toBe("reported");
    const later = { round: 1, opens: clock.now, deadline: clock.now + 600 };
    expect((await turned({ operator, plan, task: later }, { record, clock: { now: clock.now + 2 } })).turn.why).toContain(
      "its plan promised 0.03",
    );
  });
  test("killed between any two steps, a device never takes part twice, and none is lost", async () => {
    const whole = (await turned()).order.length;
    for (let dies = 0; dies <= whole; dies++) {
      const [one, stores] = [await server(), [new MemoryStore(), new MemoryStore()] as const];
      const open = () => DeviceRecord.open(...stores, { firstTime: true, now: OPENS, budgets: BUDGETS });
      await played(one, await deviceOf(one, { record: await open() }), dies);
      const sent = one.asked.some((each) => each.startsWith("POST /v1/reports"));
      const record = await open();
      const took = record.participations().length;
      expect(took === 1 || !sent).toBe(true);
      const next = (await played(one, await deviceOf(one, { record, clock: { now: OPENS + 60 } }))) as Seen;
      expect(next.turn.what).toBe(took === 1 ? "refused" : "reported");
      expect(record.participations().length).toBe(1);
    }
  });
});

describe("a record that was lost", () => {
  const open = (main: MemoryStore, journal: MemoryStore, firstTime = false) =>
    DeviceRecord.open(main, journal, { firstTime, now: OPENS, budgets: { zcdp: 4, week: 2 } });
  test("one place of two: nothing is lost", async () => {
    const [main, journal] = [new MemoryStore(), new MemoryStore()];
    const one = await server();
    await played(one, await deviceOf(one, { record: await open(main, journal, true) }));
    for (const places of [
      [new MemoryStore(), journal.copied()],
      [main.copied(), new MemoryStore()],
    ] as const) {
      expect((await open(...places)).losses().length).toBe(1); // neither is known to be the last
    }
    for (const record of [await open(main, new MemoryStore()), await open(new MemoryStore(), journal)]) {
      expect(record.losses()).toEqual([]);
      expect(record.participations().length).toBe(1);
    }
  });
  test("both: the budget counts as spent, and a run under way is refused", async () => {
    const record = await open(new MemoryStore(), new MemoryStore());
    expect(record.spent(OPENS)).toMatchObject({ zcdp: 4, week: 2 });
    expect(record.spent(OPENS + 8 * 24 * 3600)).toMatchObject({ zcdp: 4, week: 0 });
    expect((await turned({ task: { round: 5 } }, { record, policy: { budget_zcdp: 100 } })).turn.why).toContain(
      "lost its record",
    );
  });
  test("a new run from its first round on, in which it counts as if it had been", async () => {
    const [operator, record, clock] = [
      await newOperator(),
      await open(new MemoryStore(), new MemoryStore()),
      { now: OPENS + 1 },
    ];
    const shared = { record, clock, policy: { budget_zcdp: 100 } };
    expect((await turned({ operator }, shared)).turn.why).toContain("may have taken part in this round");
    expect(record.spent(OPENS).zcdp).toBeGreaterThan(4);
    expect((await turned({ operator, task: { round: 3 } }, shared)).turn.why).toContain("less than 4 rounds");
    expect((await turned({ operator, task: { round: 4 } }, shared)).turn.what).toBe("reported");
  });
  test("a copy of both is no record", async () => {
    const [main, journal] = [new MemoryStore(), new MemoryStore()];
    await open(main, journal, true);
    expect((await open(main.copied(), journal.copied(), true)).losses().length).toBe(1);
  });
  test("a second process that writes is noticed", async () => {
    const [main, journal] = [new MemoryStore(), new MemoryStore()];
    const [first, second] = [await open(main, journal, true), await open(main, journal)];
    await expect(first.pause(true)).rejects.toThrow("cannot be written");
    await second.pause(true);
    expect(second.paused()).toBe(true);
  });
});

describe("who is believed", () => {
  test("two logs: the device keeps both, and asks for nothing more", async () => {
    const [operator, record, clock] = [await newOperator(), await newRecord(), { now: OPENS + 1 }];
    await turned({ operator, lines: (each) => [planLine("66".repeat(32)), planLine(each)] }, { record, clock });
    const seen = await turned({ operator, task: { round: 4 } }, { record, clock });
    expect(seen.turn.why).toContain("two logs");
    expect(seen.order.at(-1)).toBe("DELETE reports");
    const next = await turned({ operator, task: { round: 4 } }, { record, clock });
    expect([next.turn.what, next.order]).toEqual(["refused", []]);
    expect(record.operator(operator.key).otherLog?.entries.length).toBe(1);
  });
  test("a task of a stranger is refused", async () => {
    const [operator, stranger] = [await newOperator(), await newOperator()];
    const one = await server({ operator: stranger });
    const seen = (await played(one, await deviceOf({ operator }))) as Seen;
    expect(seen.turn.why).toContain("handed none over");
    expect(seen.order).toEqual(["POST check-in", "DELETE reports", "GET key"]);
  });
  test("another key, handed over for everybody to see: the next turn takes part", async () => {
    const [old, fresh] = [await newOperator(), await newOperator()];
    const document = JSON.stringify({ old: old.key, new: fresh.key });
    const rotation = {
      document,
      by_old: await old.sign("hand-over", document),
      by_new: await fresh.sign("hand-over", document),
    };
    const line = handOverLine(await digest(document));
    const one = await server({
      operator: fresh,
      lines: (each) => [line, planLine(each)],
      on: (asks, usual) => (asks.path === "/v1/key/hand-over" ? Promise.resolve(json(rotation)) : usual()),
    });
    const device = await deviceOf({ operator: old });
    const seen = (await played(one, device)) as Seen;
    expect(seen.turn.why).toContain("changed its key");
    expect(seen.order).toEqual(["POST check-in", "DELETE reports", "GET key", "GET log"]);
    expect((await played(one, device))?.turn.what).toBe("reported");
    expect((await played(await server({ operator: old, task: { round: 4 } }), device))?.turn.what).toBe("refused");
  });
  test("a plan that another signed is refused", async () => {
    const stranger = await newOperator();
    const seen = await turned({
      on: async (asks, usual) => {
        const came = await usual();
        if (!asks.path.startsWith("/v1/plans") || came.kind !== "answered") return came;
        const said = JSON.parse(new TextDecoder().decode(came.body)) as Signed;
        return json({ ...said, signature: await stranger.sign("plan", said.document) });
      },
    });
    expect(seen.turn.why).toContain("did not sign the plan");
  });
});

test("a file that comes in pieces is gone on with where it was cut off", async () => {
  let times = 0;
  const seen = await turned({
    on: async (asks, usual) => {
      const came = await usual();
      if (!asks.path.startsWith("/v1/models") || came.kind !== "answered") return came;
      const from = Number(/bytes=(\d+)-/.exec(asks.headers["range"] ?? "")?.[1] ?? 0);
      const piece = came.body.slice(from, from + 200);
      return {
        ...came,
        status: from > 0 ? 206 : 200,
        body: times++ < 2 ? piece : came.body.slice(from),
        whole: times > 2,
      };
    },
  });
  expect(seen.turn.what).toBe("reported");
  expect(
    seen.requests.filter(({ path }) => path.startsWith("/v1/models")).map(({ headers }) => headers["range"]),
  ).toEqual([undefined, "bytes=200-", "bytes=400-"]);
});

test("nothing to do, no answer, and an answer that is none", async () => {
  const away = await turned({ on: async () => json({ answer: "come_back", after_s: 6, before_s: 8 }) });
  expect(away.turn).toMatchObject({ what: "idle", wait: { after: 6, before: 8 } });
  expect(waitAfter(away.turn, 0, 0, 0.5)).toBe(7);
  const lost = await turned({ on: async () => ({ kind: "failed", why: "away" }) });
  expect(lost.turn).toMatchObject({ what: "unanswered", why: "away" });
  expect([0, 0.999].map((random) => Math.round(waitAfter(lost.turn, 1, 0, random)))).toEqual([1, 3]);
  expect(waitAfter(lost.turn, 3, 0, 0)).toBe(4);
  expect(waitAfter(lost.turn, 30, 0, 0)).toBe(900);
  expect(waitAfter(lost.turn, 1, 6000, 0)).toBe(20);
  expect((await turned({ on: async () => json({ answer: "dance" }) })).turn.what).toBe("unanswered");
  expect((await turned({ on: async () => problem(503, "tacit:busy") })).turn.what).toBe("unanswered");
});

test.each([-30, 0, 30])("a report leaves when it would, whatever reading took, though the clock is set by %s s", async (seconds) => {
  const left: number[] = [];
  for (const took of [0.01, 3]) {
    const time: Time = { now: OPENS + 1 };
    const one = await server({
      on: async (asks, usual) => {
        if (asks.path.startsWith("/v1/reports/")) left.push(time.now);
        return usual();
      },
    });
    const train: Training["train"] = async (...given) => {
      time.now += took;
      time.setBy = seconds;
      return HALF.train(...given);
    };
    await played(one, await deviceOf(one, { clock: time, training: { ...HALF, train } }));
  }
  expect(left).toHaveLength(2);
  expect(left[1]).toBeCloseTo(left[0] as number, 6);
});

test("paused, a device asks for nothing", async () => {
  const record = await newRecord();
  await record.pause(true);
  expect((await turned({}, { record })).order).toEqual([]);
});

describe("tokens", () => {
  test("are asked for with the code, shown later, and none twice", async () => {
    const [operator, signer, record] = [await newOperator(), await newSigner(2930), await newRecord()];
    const document = JSON.stringify({ ...signer.key, opens: OPENS - 10, ends: OPENS + 1e5 });
    const line = tokenKeyLine(2930, await digest(document));
    const shown: string[] = [];
    let [requests, lose] = ["", true];
    const one = await server({
      operator,
      lines: (each) => [line, planLine(each)],
      on: async (asks, usual) => {
        const said = asks.body === null ? null : new TextDecoder().decode(asks.body);
        if (asks.path === "/v1/tokens/key") return json(await operator.signed("token-key", document));
        if (asks.path === "/v1/tokens") {
          expect(requests === "" || requests === said).toBe(true); // the same request, or the batch is gone
          requests = said ?? "";
          if (lose) {
            lose = false;
            return { kind: "failed", why: "away" };
          }
          const { blinded } = JSON.parse(requests) as { blinded: string[] };
          return json({ epoch: 2930, signatures: blinded.map(signer.sign) });
        }
        if (asks.path === "/v1/check-in") {
          const { token } = JSON.parse(said ?? "") as { token: string | null };
          if (token === null) return problem(401, "tacit:token");
          shown.push(token);
          return json({ answer: "come_back", after_s: 1, before_s: 2 });
        }
        return usual();
      },
    });
    const device = await deviceOf(one, { record, code: "x".repeat(32) });
    expect((await played(one, device))?.turn.what).toBe("unanswered");
    const got = await played(one, device);
    expect(got?.order).toEqual(["POST check-in", "GET tokens", "GET log", "POST tokens"]);
    expect(got?.turn.wait).toEqual({ after: 0, before: 600 });
    device.time.now += 301;
    for (let turns = 0; turns < 3; turns++) {
      expect((await played(one, device))?.order).toEqual(["POST check-in", "GET tokens", "GET log", "POST check-in"]);
    }
    expect(new Set(shown).size).toBe(3);
    expect((await played(one, device))?.turn.why).toContain("showed all");
    expect(shown.length).toBe(3);
  });
});

describe("what comes is what was named", () => {
  const instead = (path: string, said: (operator: Operator) => Promise<Came>) => async () => {
    const [operator, record] = [await newOperator(), await newRecord()];
    const lines = (each: string) => [planLine(each)];
    const on: Changed["on"] = (asks, usual) => (asks.path.startsWith(path) ? said(operator) : usual());
    const seen = await turned({ operator, lines, on }, { record });
    expect(record.participations()).toEqual([]);
    expect(seen.order.at(-1)).toBe("DELETE reports");
    return seen.turn.why;
  };
  test("another plan of the same operator is refused", async () => {
    const other = planSaid({ code: "99".repeat(32) });
    const why = instead("/v1/plans", async (operator) =>
      json({ ...(await operator.signed("plan", other)), evidence: null }),
    );
    expect(await why()).toContain("not the one that the task names");
  });
  test("a log that another signed is refused", async () => {
    const why = instead("/v1/log", async () =>
      json(await (await newOperator()).log([planLine(await digest(planSaid({})))])),
    );
    expect(await why()).toContain("did not sign the head");
  });
  test("another model of the same length is refused", async () => {
    const model = tensorFile("model", Float32Array.of(3, 2, 1), {});
    const why = instead("/v1/models", async () => ({
      kind: "answered",
      status: 200,
      headers: {},
      body: model,
      whole: true,
    }));
    expect(await why()).toContain("not the one that was named");
  });
  test("a report of another length says nothing instead", async () => {
    const one = await server();
    const device = await deviceOf(one);
    const [usual] = device.handlers;
    if (usual === undefined) throw new Error("no handler");
    const longer: Handler = {
      ...usual,
      prepare: async (...given) => ({
        ...(await usual.prepare(...given)),
        fromText: async () => ({ values: new Float32Array(4), beside: {} }),
      }),
    };
    const seen = (await played(one, { ...device, handlers: [longer] })) as Seen;
    expect(seen.turn.why).toContain("nothing to say");
    expect(body(seen).length).toBe(532);
  });
});
