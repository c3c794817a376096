import { expect, test } from "vitest";

import { planLine } from "../core/log.ts";
import { DeviceRecord, MemoryStore } from "../core/record.ts";
import { digest } from "../core/signing.ts";
import { newOperator } from "./operator.ts";
import { planSaid, TRAINING } from "./plans.ts";
import { seeded } from "./seeded.ts";
import { BUDGETS, deviceOf, OPENS, played, server } from "./turns.ts";

const RUNS = 40;
const TURNS = 8;

/** Tasks, deaths, lost answers, clocks and lost places by a seed: what must hold of whatever then left the device. */
test("no sequence of faults makes a device take part too often, or more than its record says", async () => {
  const draw = seeded(37);
  for (let run = 0; run < RUNS; run++) {
    const separation = { rounds: draw.below(3) ? 3 : null, timer_seconds: draw.below(2) ? 100 : null, clock: "start" };
    const privacy = { ...TRAINING, zcdp: 0.09, max_participations: draw.below(2) ? 2 : null };
    const plan = {
      separation: separation.rounds === null ? { ...separation, timer_seconds: 100 } : separation,
      privacy,
    };
    const lines = [planLine(await digest(planSaid(plan)))];
    const [operator, stores] = [await newOperator(), [new MemoryStore(), new MemoryStore()]];
    let now = OPENS;
    const left: { round: number; opens: number }[] = []; // reports that a server saw
    for (let turns = 0; turns < TURNS; turns++) {
      const open = () => {
        const [main, journal] = stores as [MemoryStore, MemoryStore];
        return DeviceRecord.open(main, journal, { firstTime: true, now, budgets: BUDGETS });
      };
      const record = await open();
      const opens = now + draw.below(60) - 20;
      const round = draw.below(12);
      const task = {
        round,
        opens,
        deadline: opens + 600,
        task: draw
          .below(2 ** 31)
          .toString(16)
          .padStart(32, "0"),
      };
      const one = await server({
        operator,
        plan,
        task,
        lines: () => lines,
        on: async (_, usual) => (draw.below(12) ? usual() : { kind: "failed", why: "lost" }),
      });
      const device = await deviceOf(one, { record, clock: { now } });
      await played(one, device, draw.below(3) ? Infinity : draw.below(9));
      if (one.asked.some((each) => each.startsWith("POST /v1/reports"))) left.push({ round, opens });
      if (!draw.below(6)) stores[draw.below(2)] = new MemoryStore(); // one of two places is lost
      now = Math.max(now, device.time.now) + draw.below(120) - (draw.below(8) ? 0 : 150); // and a clock is set back
    }
    const rounds = left.map((each) => each.round);
    for (const [at, each] of left.entries()) {
      for (const other of left.slice(0, at)) {
        expect(Math.abs(each.round - other.round)).toBeGreaterThanOrEqual(plan.separation.rounds ?? 1);
        if (plan.separation.timer_seconds !== null) expect(each.opens - other.opens).toBeGreaterThanOrEqual(100);
      }
    }
    const [main, journal] = stores as [MemoryStore, MemoryStore];
    const record = await DeviceRecord.open(main, journal, { firstTime: true, now, budgets: BUDGETS });
    expect(record.losses()).toEqual([]);
    const kept = record.participations();
    for (const round of rounds) expect(kept.map((each) => each.round)).toContain(round);
    expect(rounds.length).toBeLessThanOrEqual(privacy.max_participations ?? Infinity);
    expect(kept.length).toBeLessThanOrEqual(privacy.max_participations ?? Infinity);
    expect(record.spent(now).zcdp).toBeLessThanOrEqual(0.09 * (1 + 1e-9));
  }
}, 300_000);
