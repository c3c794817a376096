"""What the noise of a recipe will leave of its model: told before training, and refused where that is nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tacit.design.workload import PREFIX
from tacit.errors import InputError
from tacit.files import PathLike, as_path
from tacit.jobs.plan.free_model import free_model_for
from tacit.jobs.plan.job import DrawnResult
from tacit.planning import Clients, mechanism_named
from tacit.planning.affordable import PlannedTraining, affordable
from tacit.planning.judgement import (
    FreeModel,
    Gains,
    Judgement,
    Verdict,
    from_public,
    from_random,
    judged,
    not_forecast,
)
from tacit.planning.noise_forecast import FACTOR, NoiseForecast, ratio_for, share_kept
from tacit.privacy.delta import DELTA_TOO_LARGE, publishing_warning
from tacit.privacy.gaussian import epsilon
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.rounding import rounded_up
from tacit.progress import Noted, Progress, Warned, silent
from tacit.reports.blocks import Block, Paragraph
from tacit.reports.figure import BLUE, ORANGE, Axis, ErrorBars, Figure, Line, Panel, Points

if TYPE_CHECKING:  # what these need is loaded when a recipe is read
    from tacit.networks.language_model import LanguageModel
    from tacit.recipe import Recipe
    from tacit.training.hooks import Hooks
    from tacit.training.rounds import RoundPlan

CODE = "noise"  # of the events that tell it
WORTH = 0.8  # of the noise, below which another report goal is worth naming
SMALLER = 1.6  # times too much noise, up to which a network that bears it is more than a fifth as large
CURVE = 60  # points of a figure's curve
PRICES = 40  # rounds after which the price is drawn


@dataclass(frozen=True, kw_only=True)
class NoiseForecastResult(DrawnResult):
    """The noise of a recipe against its signal, for so many training clients; `public`: it begins from public text.

    noise_forecast: None where it cannot be told, and `unknown` says why.
    """

    noise_forecast: NoiseForecast | None
    clients: int
    delta: float
    public: bool
    extrapolated: bool = False  # for a larger cohort: its own epsilon is nobody's
    unknown: str = ""
    free: FreeModel | None = None  # measured; None: no public text is known

    TITLE = "What the noise of a recipe leaves"

    def answer(self) -> str:
        """The judgement."""
        said = self.judged
        return f"{said.verdict.upper()}. {said.reasons()}"

    def details(self) -> list[Block]:
        """What the noise does, and the ways out."""
        return self.blocks()[1:]

    @property
    def judged(self) -> Judgement:
        """Whether it is worth it, over what is free."""
        found = self.noise_forecast
        if found is None:
            return not_forecast(self.unknown, self.free)
        return judged(self._gains(found.share_kept), self.free, hopeless=found.noisiness == "too noisy")

    def _gains(self, kept: float) -> Gains:
        return from_public(kept) if self.public else from_random(kept)

    @property
    def judgement(self) -> Verdict:
        """What comes of it."""
        return self.judged.verdict

    @property
    def sentence(self) -> str:
        """What the noise does; empty where that is not known."""
        found = self.noise_forecast
        if found is None:
            return ""
        if not found.noise:
            return "No noise is added, so none costs accuracy."
        low, high = found.interval
        noise = f"The noise of {found.noises} decryptors" if found.noises > 1 else "The noise"
        return (
            f"{noise} is {found.ratio:.2g} of the signal. About {found.share_kept:.0%} of the accuracy without noise "
            f"will be kept ({low:.0%} to {high:.0%} in measured runs)."
        )

    @property
    def says(self) -> str:
        """The verdict, what is expected over what is free, and what the noise does."""
        said = self.judged
        return " ".join(filter(None, (f"{said.verdict.upper()}.", said.reasons(), self.sentence)))

    @property
    def ways(self) -> tuple[str, ...]:
        """What else one can do, each by itself: that of the judgement, then what lessens the noise where it costs."""
        first = self.judged.way_out
        return (*((first,) if first else ()), *self._less_noise())

    def _less_noise(self) -> tuple[str, ...]:
        found = self.noise_forecast
        if found is None or found.noisiness == "quiet":
            return ()
        if judged(self._gains(1.0), self.free).verdict == "no gain expected":
            return ()  # not without any noise either
        times = found.times_too_much
        if self.extrapolated:
            return (f"{times:.2g} times less noise: a larger privacy.extrapolate_to, or a larger epsilon there",)
        working = rounded_up(epsilon(found.working_zcdp, self.delta))
        ways = [
            *self._more_reports(found),
            f"{times:.2g} times less noise, which is epsilon {working} at delta {self.delta:g} for these clients",
            f"{found.working_population(self.clients):,} clients in place of {self.clients:,}, with "
            f"{times:.2g} times the report goal",
        ]
        if times <= found.noisier:
            ways.append(
                f"a server that adds the noise in place of {found.noises} decryptors, and is trusted with the sums"
            )
        if times < SMALLER:
            ways.append(f"a network of {found.working_parameters:,} parameters in place of {found.parameters:,}")
        return tuple(ways)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What nobody may overlook of the price itself: a delta that allows to publish a client's data outright."""
        promised = self.noise_forecast is not None and self.noise_forecast.noise and not self.extrapolated
        warning = publishing_warning(self.delta, self.clients) if promised else None
        return () if warning is None else (f"{DELTA_TOO_LARGE}: {warning}",)

    def _more_reports(self, found: NoiseForecast) -> list[str]:
        """The report goal of least noise among these clients, where it does more than a little."""
        served = found.guarantee.participation
        training = PlannedTraining(
            rounds=served.rounds, parameters=found.parameters, step=found.step, server=found.server
        )
        best = affordable(Clients(devices=self.clients), training, mechanism_named("blt"), delta=self.delta)
        then = replace(
            best.at_epsilon(epsilon(found.guarantee.zcdp, self.delta)),
            public=self.public,
            noises=found.noises,
            honest=found.honest,
        )
        if best.report_goal <= found.report_goal or then.ratio > WORTH * found.ratio:
            return []
        apart = then.guarantee.participation.min_separation
        goal = f"a report goal of {best.report_goal:,} at a separation of {apart}"
        enough = f"{then.good:.0%} from epsilon {rounded_up(epsilon(then.working_zcdp, self.delta), 3)} on"
        if then.noisiness == "too noisy":
            return [f"{goal}, which keeps {enough}"]
        also = "" if then.noisiness == "quiet" else f" (and {enough})"
        return [f"{goal}, which at this epsilon keeps about {then.share_kept:.0%}{also}"]

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = self.noise_forecast
        numbers: dict[str, Any] = (
            {}
            if found is None
            else {
                "noise": found.noise,
                "step": found.step,
                "ratio": found.ratio,
                "kept": found.share_kept,
                "kept_low": found.interval[0],
                "kept_high": found.interval[1],
                "times_too_much": found.times_too_much,
                "zcdp": found.guarantee.zcdp,
                "working_zcdp": found.working_zcdp,
                "working_epsilon": epsilon(found.working_zcdp, self.delta),
                "working_population": found.working_population(self.clients),
            }
        )
        return {
            "schema": "tacit.noise_forecast",
            "version": 1,
            **self.judged.to_record(),
            "sentence": self.sentence,
            "ways": list(self.ways),
            "clients": self.clients,
            "delta": self.delta,
            **numbers,
        }

    def blocks(self) -> list[Block]:
        """The judgement, what the noise does, and the ways out."""
        blocks: list[Block] = [Paragraph(self.answer())]
        blocks += [Paragraph(self.sentence)] if self.sentence else []
        blocks += [Paragraph(f"way out: {way}") for way in self.ways]
        blocks += [Paragraph(warning) for warning in self.warnings]
        return [*blocks, Paragraph("An estimate of training, no promise: docs/results/noise-forecast.md.", soft=True)]

    def figure(self) -> Figure:
        """The measured curve, and this recipe on it. InputError where nothing can be told."""
        found = self.noise_forecast
        if found is None:
            raise InputError(f"there is nothing to draw: {self.unknown}.")
        ratios = [ratio_for(0.999) * (20 / ratio_for(0.999)) ** (at / CURVE) for at in range(CURVE + 1)]
        at = max(found.ratio, ratios[0])
        low, high = found.interval
        marks = (
            Line(label="measured runs", x=ratios, y=[share_kept(each) for each in ratios], dots=False, hue=BLUE),
            Line(x=ratios, y=[share_kept(each * FACTOR) for each in ratios], dots=False, hue=BLUE, faint=True),
            Line(x=ratios, y=[share_kept(each / FACTOR) for each in ratios], dots=False, hue=BLUE, faint=True),
            ErrorBars(x=(at,), y=(found.share_kept,), low=(low,), high=(high,), hue=ORANGE),
            Points(label="this recipe", x=(at,), y=(found.share_kept,), size=8, hue=ORANGE),
        )
        return Figure(
            name="noise_forecast",
            title="What the noise leaves",
            alt=f"The share of accuracy that is kept falls with the ratio of noise to signal; this recipe is at "
            f"{found.ratio:.3g}, where {found.share_kept:.0%} is kept.",
            panels=(
                Panel(
                    marks=marks,
                    x=Axis("noise over signal", log=True),
                    y=Axis("share of the accuracy without noise", percent=True, low=0),
                ),
            ),
            headed=True,
        )

    def figures(self) -> tuple[Figure, ...]:
        """The recipe on the curve, and what its rounds cost one after the other; what is not known is not drawn."""
        found = self.noise_forecast
        if found is None:
            return ()
        priced = found.guarantee.private and not self.extrapolated  # a larger cohort's price is nobody's
        return (self.figure(), *([_price(found.guarantee, self.delta)] if priced else []))


def _price(planned: Guarantee, delta: float) -> Figure:
    """zCDP and epsilon of the updates after so many of the planned rounds, for clients that come as often as they may:
    computed, nothing is simulated.
    """
    limits = planned.participation
    rounds = sorted({max(1, round(limits.rounds * at / PRICES)) for at in range(1, PRICES + 1)})
    after = [planned.with_participation(replace(limits, rounds=each).effective) for each in rounds]
    panels = (
        ("zCDP", [each.zcdp for each in after], BLUE),
        (f"epsilon at delta {delta:g}", [each.epsilon(delta) for each in after], ORANGE),
    )
    return Figure(
        name="price",
        title="What the rounds cost, one after the other",
        alt=f"The zCDP and the epsilon of the updates after so many of {limits.rounds:,} planned rounds: epsilon "
        f"{rounded_up(after[-1].epsilon(delta))} at the end.",
        panels=tuple(
            Panel(
                marks=(
                    Line(x=[0, *rounds], y=[0.0, *values], hue=hue, label=label),
                    Points(label="as planned", x=[rounds[-1]], y=[values[-1]], size=9, hollow=True, hue=hue),
                ),
                x=Axis("rounds", whole=True, low=0),
                y=Axis(label, low=0),
            )
            for label, values, hue in panels
        ),
        same_x=True,
        height=2.4,
        legend="below",
    )


def noise_forecast(
    recipe: "Recipe | PathLike",
    *,
    data: PathLike | None = None,
    init: PathLike | None = None,
    public: PathLike | None = None,
    progress: Progress = silent,
) -> NoiseForecastResult:
    """What the noise of a recipe will leave of its model, and whether that gains anything over what is free; nothing is
    trained, and no client's text is read.

    recipe: a Recipe, or the path of its file. data, init: in place of the recipe's cache and first model. public: a
    cache of public text, whose best free model is measured; left out, that which the first model was made of, where it
    is at hand. Raises: RecipeError, CacheError, AccountingError; ParticipationError for a report goal that the clients
    cannot give, as training does; InputError where the first model is none that training could begin from.
    """
    from tacit.jobs.opened_cache import open_cache
    from tacit.jobs.run_start import key_for
    from tacit.jobs.train.refusals import check_client_cost, check_participation
    from tacit.keyboard.model_folder import load_first_model
    from tacit.networks.language_model import parameter_count
    from tacit.recipe import Recipe
    from tacit.text.vocabulary import Vocabulary
    from tacit.training.hooks import Hooks

    loaded = Recipe.from_argument(recipe)
    cache = open_cache(loaded.data.cache if data is None else as_path("data", data))
    matrix, clients = loaded.matrix(), loaded.clients(len(cache.clients("train")))
    loaded = loaded.designed().with_delta(loaded.privacy.delta_for(clients))
    begins = loaded.model.init if init is None else as_path("init", init)
    plan = loaded.plan(matrix)
    if loaded.deployment is None:
        check_participation(loaded, plan, clients, key_for(loaded.run.seed), Hooks())
    network = loaded.model.settings(cache.manifest.vocabulary.size)
    check_client_cost(loaded, network.vocabulary, parameter_count(network))
    if begins is not None:
        load_first_model(begins, network, Vocabulary.from_json(cache.vocabulary_json))
    free = free_model_for(begins, public, progress=progress)
    return forecast_for_record(loaded, plan, network, clients=clients, public=begins is not None, free=free)


def forecast_for_record(
    recipe: "Recipe",
    plan: "RoundPlan",
    network: "LanguageModel",
    *,
    clients: int,
    public: bool,
    hooks: "Hooks | None" = None,
    free: FreeModel | None = None,
) -> NoiseForecastResult:
    """Of the rounds that a recipe plans with a network.

    free: what it is judged over. hooks: the parts of its own that a run has, of which nothing was measured.
    """
    from tacit.networks.language_model import HasNoiseCurve, parameter_count

    delta = recipe.privacy.delta_for(clients)
    server, unknown = recipe.server.linear(), ""
    if plan.updates.strategy is not None:
        if hooks is not None and (hooks.optimizer is not None or hooks.algorithm is not None):
            unknown = "an optimizer or an algorithm of one's own was never measured"
        elif server is None:
            unknown = f"server.method='{plan.server.method}' divides by what it saw"
        elif not isinstance(network, HasNoiseCurve):
            unknown = f"the network '{recipe.model.kind}' was never measured"
    known = NoiseForecast(
        guarantee=plan.updates,
        report_goal=plan.report_goal,
        learning_rate=plan.server.learning_rate,
        server=server or PREFIX,
        parameters=parameter_count(network),
        public=public,
        noises=max(1, plan.decryptors),
        honest=plan.honest_decryptors,
    )
    if not unknown and not known.known:
        unknown = (
            f"it was not measured below {known.fewest_rounds} rounds, and this recipe has {plan.rounds}; so short a "
            "run learns little without noise, and may keep less of that"
        )
    return NoiseForecastResult(
        noise_forecast=None if unknown else known,
        clients=clients,
        delta=delta,
        public=public,
        extrapolated=recipe.privacy.extrapolate_to is not None,
        unknown=unknown,
        free=free,
    )


def tell(found: NoiseForecastResult, progress: Progress, *, anyway: bool) -> None:
    """Say it: a note, or a warning where noise costs or no gain is expected; InputError where it is too noisy, unless
    `anyway`. And what is to be known of its price before it is paid.
    """
    for warning in found.warnings:
        progress(Warned("delta", warning))
    noise = found.noise_forecast
    said = f"{found.says}{_ways_out(found.ways)}"
    if found.judgement == "too noisy" and not anyway:
        raise InputError(f"{said} Give --anyway (anyway=True) to train it all the same.")
    if found.judgement == "no gain expected" or (noise is not None and noise.noisiness != "quiet"):
        progress(Warned(CODE, said))
    elif noise is None or noise.noise:
        progress(Noted(CODE, said))


def _ways_out(ways: Sequence[str]) -> str:
    if not ways:
        return ""
    return f" {'Way' if len(ways) == 1 else 'Ways'} out: {'; or '.join(ways)} (docs/which-epsilon.md)."
