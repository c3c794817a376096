"""The obvious twin of the simulator: Python integers, every device looked at in every check-in period, nothing skipped.

Written from the docstrings of `tacit.population`, not from its loops; equal bit for bit.
"""

import math
from dataclasses import dataclass

from tacit.population.availability import Availability, HalfDay
from tacit.population.check_ins import run_length
from tacit.population.devices import Population, RoundRules
from tacit.population.hashed_randomness import key_for

MASK = 2**64 - 1
HOUR = 3_600_000
NO_TIME = 10**15


def mix(bits: int) -> int:
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & MASK
    return bits ^ (bits >> 31)


def draw(key: int, device: int, moment: int) -> int:
    return mix(mix((key + device * 0x9E3779B97F4A7C15) & MASK) ^ (moment * 0xD1B54A32D192ED03 & MASK))


def uniform(bits: int) -> float:
    return (bits >> 11) / 2**53


def gaussian(bits: int) -> float:
    return (sum((bits >> shift) & 0xFFFF for shift in (0, 16, 32, 48)) - 131070) / math.sqrt((2**32 - 1) / 3)


@dataclass
class SlowDevices:
    population: Population
    rules: RoundRules
    seed: int

    def key(self, purpose: str) -> int:
        return int(key_for(self.seed, purpose))

    def sessions(self, device: int, first_day: int, days: int) -> list[tuple[int, int]]:
        """All sessions of the local days from `first_day` on, in UTC."""
        availability, traits = self.population.availability, self.key("traits")
        if uniform(draw(traits, device, 0)) >= availability.unmetered:
            return []
        weight, lot, ahead = sum(w for _, w in availability.zones), uniform(draw(traits, device, 1)), None
        for index, (hours, _) in enumerate(availability.zones):
            if ahead is None and lot < sum(w for _, w in availability.zones[: index + 1]) / weight:
                ahead = round(hours * HOUR)
        assert ahead is not None
        ahead += int(float(availability.rhythm_spread * HOUR) * gaussian(draw(traits, device, 2)))
        found = []
        for day in range(first_day, first_day + days):
            for half, opens, closes, number in (
                (availability.day, 8, 19, 2 * day),
                (availability.night, 19, 32, 2 * day + 1),
            ):
                session = self.session(half, device, number, (day * 24 + opens) * HOUR, (day * 24 + closes) * HOUR)
                if session is not None:
                    found.append((session[0] - ahead, session[1] - ahead))
        return found

    def session(self, half: HalfDay, device: int, number: int, opens: int, closes: int) -> tuple[int, int] | None:
        if half.charging == 0:
            return None
        charges = uniform(draw(self.key("traits"), device, 3 + number % 2)) ** (1 / half.charging - 1)
        if uniform(draw(self.key("presence"), device, number)) >= charges * half.idle:
            return None
        late = (half.starts - (opens // HOUR) % 24) % 24 * HOUR
        late += half.starts_spread * HOUR * gaussian(draw(self.key("begin"), device, number))
        lasts = half.hours * HOUR + half.hours_spread * HOUR * gaussian(draw(self.key("length"), device, number))
        begin = opens + int(max(0.0, late))
        end = begin + int(max(60_000.0, lasts))
        return (min(begin, closes), min(end, closes)) if begin < closes else None

    def attempt(self, device: int, at: int, session_ends: int) -> tuple[int, bool]:
        work, traits = self.population.work, self.key("traits")
        examples = work.examples * math.exp(work.examples_spread * gaussian(draw(traits, device, 8)))
        slower = math.exp(-work.speed_spread * gaussian(draw(traits, device, 9)))
        lasts = max(1, int(min(examples, work.most_examples) * (1000 / work.examples_per_second) * slower))
        lasts += int(-math.log1p(-uniform(draw(self.key("transfer"), device, at))) * (work.transfer_seconds * 1000))
        fails = uniform(draw(self.key("failure"), device, at)) < work.dropout
        part = uniform(draw(self.key("moment of failure"), device, at))
        ends = at + 1 + int(part * lasts) if fails else at + lasts
        latest = min(session_ends, at + round(self.rules.deadline_minutes * 60_000))
        return (latest, False) if ends > latest else (ends, not fails)

    def asks(self, cell: int) -> list[tuple[int, int]]:
        """(moment, device) of one check-in period, in order."""
        period, devices = round(self.rules.check_in_minutes * 60_000), self.population.devices
        run = run_length(devices)
        order = list(range(-(-devices // run)))
        for index in range(len(order) - 1, 0, -1):
            other = (draw(self.key("order"), index, cell) >> 32) * (index + 1) >> 32
            order[index], order[other] = order[other], order[index]
        places = len(order) * run
        all_asks = [(place, order[place // run] * run + place % run) for place in range(places)]
        return [(cell * period + place * period // places, who) for place, who in all_asks if who < devices]

    def run(self, rounds: int) -> list[dict[str, object]]:
        """Each round's clients, times and counts."""
        rules, happened = self.rules, []
        back = [0] * self.population.devices  # when the timer is over, or the attempt
        calendar = [self.sessions(device, -3, 3 + 60) for device in range(self.population.devices)]
        opens = 0
        for _ in range(rounds):
            attempts: list[tuple[int, int, int, bool]] = []
            finish = NO_TIME
            cell = opens // round(rules.check_in_minutes * 60_000)
            while finish == NO_TIME or cell * round(rules.check_in_minutes * 60_000) < finish:
                for at, device in self.asks(cell):
                    if not opens <= at < finish or back[device] > at:
                        continue
                    session = next((end for begin, end in calendar[device] if begin <= at < end), None)
                    gone = sum(not uploaded and ended <= at for _, _, ended, uploaded in attempts)
                    if session is None or len(attempts) - gone >= rules.places:
                        continue
                    ended, uploaded = self.attempt(device, at, session)
                    attempts.append((device, at, ended, uploaded))
                    back[device] = NO_TIME if uploaded else ended
                    reports = sorted(end for _, _, end, up in attempts if up)
                    if len(reports) >= rules.report_goal:
                        finish = reports[rules.report_goal - 1]
                cell += 1
            arrived = sorted((attempt for attempt in attempts if attempt[3]), key=lambda attempt: attempt[2])
            timer = round(rules.timer_hours * HOUR)
            for rank, (device, _, ended, _) in enumerate(arrived):
                if rank < rules.report_goal:
                    back[device] = finish + timer if rules.clock == "finish" else max(ended + timer, finish)
                else:
                    back[device] = ended + timer
            happened.append(
                {
                    "clients": [device for device, *_ in arrived[: rules.report_goal]],
                    "opened": opens,
                    "filled": attempts[-1][1],
                    "finished": finish,
                    "selected": len(attempts),
                    "dropped": len(attempts) - len(arrived),
                    "late": len(arrived) - rules.report_goal,
                }
            )
            opens = finish + round(rules.pause_minutes * 60_000)
        return happened


def everybody() -> Availability:
    """A population in which every device has every session."""
    always = {"charging": 1.0, "idle": 1.0, "starts_spread": 0.0, "hours_spread": 0.0}
    return Availability(
        unmetered=1.0,
        rhythm_spread=0.0,
        night=HalfDay(starts=19.0, hours=13.0, **always),
        day=HalfDay(starts=8.0, hours=11.0, **always),
    )
