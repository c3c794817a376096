"""`tacit serve` with a certificate and codes, devices with a code each: over TLS, by tokens, to a run that verifies."""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select
from tests.support.certificates import certificate
from tests.support.training.tiny import tiny_cache, tiny_recipe

import tacit
from tacit.device.turn import SessionOutcome
from tacit.server.serve import Address, Serving
from tacit.server.store.schema import tokens
from tacit.server.store.store import Store

ROUNDS, GOAL, ENROLLED = 3, 3, 5
CODES = [f"correct-horse-battery-staple-{number}" for number in range(ENROLLED)]
PATIENCE = 600.0  # seconds, on a busy machine


class Phone(threading.Thread):
    """A device that comes again and again."""

    def __init__(
        self, name: str, code: str | None, folder: Path, asked: Callable[..., SessionOutcome], over: threading.Event
    ) -> None:
        super().__init__(name=name)
        self.turns: list[SessionOutcome] = []
        self._asked, self._over, self._code = asked, over, None
        if code is not None:
            self._code = folder / f"{name}.code"
            self._code.write_text(code + "\n")
        self._state = folder / name

    def run(self) -> None:
        while not self._over.is_set():
            self.turns.append(self._asked(state=self._state, enrolment_code=self._code))
            self._over.wait(min(self.turns[-1].wait[0], 0.5))

    def came(self, what: str) -> list[SessionOutcome]:
        return [each for each in self.turns if each.what == what]


@pytest.mark.long
def test_enrolled_devices_train_a_run_over_tls_and_nobody_else_does(tmp_path: Path) -> None:
    believed, secret = certificate(tmp_path)
    ours = tiny_cache(tmp_path / "ours", {"validation": 5, "test": 6})
    typed = tiny_cache(tmp_path / "typed", {"train": 1})
    phones = {"population": "phones", "devices": ENROLLED, "pause_minutes": 0.0, "over_selection": 1.5}
    asked = tiny_recipe(
        ours.path,
        deployment=phones,
        rounds={"rounds": ROUNDS, "report_goal": GOAL, "min_separation": 1},
        privacy={"mechanism": {"name": "independent"}, "noise_multiplier": 4.0},
    )
    asked = asked.model_copy(update={"run": asked.run.model_copy(update={"seed": None})})
    (tmp_path / "codes").write_text("\n".join(CODES) + "\n")
    told, ready, stop, over = list[Serving](), threading.Event(), threading.Event(), threading.Event()
    finished: list[bool] = []

    def serve() -> None:
        done = tacit.serve(
            [asked],
            tmp_path / "out",
            workers=1,  # three reports in two workers may leave one alone, which is lost
            address=Address(port=0, tls_certificate=believed, tls_key=secret),
            enrolment_codes=tmp_path / "codes",
            serving=lambda each: (told.append(each), ready.set()),  # type: ignore[func-returns-value]
            stop=stop,
        )
        finished.append(done.finished)
        over.set()

    server = threading.Thread(target=serve)
    server.start()
    people: list[Phone] = []
    try:
        assert ready.wait(PATIENCE)
        (serving,) = told
        assert serving.url.startswith("https://")

        def turn(*, state: Path, enrolment_code: Path | None, server: str = serving.url) -> SessionOutcome:
            return tacit.run_device(
                server,
                typed.path,
                state,
                population="phones",
                operator_key=serving.operator_key,
                enrolment_code=enrolment_code,
                certificates=believed,
                first_time=True,
                once=True,
                probes=[],
                policy=tacit.Policy(send_after_s=0.0),
            )

        plain = turn(state=tmp_path / "plain", enrolment_code=None, server=serving.url.replace("https", "http"))
        assert plain.what == "unanswered" and "give https://" in plain.says
        given = [*enumerate(CODES), ("stranger", None), ("liar", "correct-horse-battery-staple-99")]
        people += [Phone(f"phone-{name}", code, tmp_path, turn, over) for name, code in given]
        for each in people:
            each.start()
        last = time.monotonic() + PATIENCE
        while server.is_alive() and time.monotonic() < last:
            over.wait(0.5)
    finally:
        stop.set()
        over.set()
        for each in [*people, server]:
            each.join()
    assert finished == [True]
    enrolled, (stranger, liar) = people[:ENROLLED], people[ENROLLED:]
    reported = [each for phone in enrolled for each in phone.came("reported")]
    assert len(reported) >= ROUNDS * GOAL and {each.round for each in reported} == set(range(ROUNDS))
    assert sum(bool(phone.came("reported")) for phone in enrolled) >= GOAL
    for phone, why in ((stranger, "enrolled devices only"), (liar, "code")):
        assert not phone.came("reported") and any(why in each.says for each in phone.came("unanswered"))
    with closing(Store.open(f"sqlite:///{tmp_path / 'out' / 'store.db'}")) as store, store.reading() as connection:
        redeemed = connection.execute(select(tokens.c.hash)).scalars().all()
    places = [each for phone in enrolled for each in phone.turns if each.run is not None]
    assert len(set(redeemed)) == len(redeemed) == len(places), "a token for each task, and none twice"
    assert tacit.verify(serving.runs[0]).holds
