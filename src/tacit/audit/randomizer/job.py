"""Local randomness and words: what the shipped randomizers leak, each answer, shuffled, and by the words output."""

from collections.abc import Iterator, Sequence

import numpy as np

from tacit.audit.finding import Finding, Findings
from tacit.audit.randomizer.exact import MOST_CHOICES, choices, exact_epsilon
from tacit.audit.randomizer.likelihood import epsilon_of_reports, reports_within
from tacit.audit.randomizer.rare_words import rare_output
from tacit.audit.randomizer.shuffled import epsilon_of_shuffled
from tacit.discovery.settings import DiscoverySettings
from tacit.errors import InputError, of_type
from tacit.privacy.empirical.samples import error_of
from tacit.privacy.local_anonymity import Anonymity
from tacit.privacy.local_guarantee import PROVED
from tacit.privacy.local_shuffling import shuffle_epsilon
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent
from tacit.randomizers.local_reports import LocalReportSettings
from tacit.randomizers.randomizer import Randomizer
from tacit.randomizers.registry import RANDOMIZERS
from tacit.text.alphabet import Alphabet

SMALL = tuple(range(2, 13))  # domains whose reports are enumerated
SMALL_EPSILONS = (0.5, 2.0, 6.0)
LARGE, LARGE_EPSILONS = 1_000, (1.0, 4.0, 8.0)
WITHIN = 0.02  # of epsilon, that the bound of a large domain may be below it
SHUFFLED_DOMAIN, SHUFFLED_EPSILON, SHUFFLED_REPORTS, SHUFFLED_DELTA = 8, 4.0, 200, 1e-3
FEWEST_CAMPAIGNS = 100
STAGE = "auditing randomizers"

ONE_REPORT = "sees one report of one device, and chooses the two values that it may hold (replace-one)."
SHUFFLE = "sees all shuffled reports, chooses what all other devices hold, and the two values of one (replace-one)."
OUTPUTS = "sees what each layer outputs, and has k - 1 users of every group type the string."


def audit_randomizer(
    *,
    names: Sequence[str] = tuple(RANDOMIZERS),
    campaigns: int = 1_000,
    shuffles: int = 30_000,
    confidence: float = 0.99,
    seed: int = 0,
    progress: Progress = silent,
) -> Findings:
    """What local randomizers leak through the shipped functions, and words that too few typed.

    names: of local randomizers. campaigns: discoveries whose outputs are looked at. shuffles: shuffled sums of each of
    two data sets. confidence: of all rows together. seed: of all randomness, so that the audit can be repeated.
    Raises: InputError for unknown names, or too few to judge.
    """
    _check(names, campaigns, shuffles, seed)
    rows = len(names) * (len(LARGE_EPSILONS) + 1) + 1  # those that are statistics; enumeration is certain
    each = 1 - error_of(confidence) / rows
    found: list[Finding] = []
    progress(StageBegan(STAGE, len(names) * (len(SMALL_EPSILONS) + len(LARGE_EPSILONS) + 1) + 1))
    for finding in _audited(names, campaigns, shuffles, each, seed):
        found.append(finding)
        progress(Advanced(STAGE, len(found)))
    progress(StageEnded(STAGE))
    asked = "" if tuple(names) == tuple(RANDOMIZERS) else "".join(f" {name}" for name in names)
    command = f"tacit audit randomizer{asked} --campaigns {campaigns} --shuffles {shuffles} --seed {seed}"
    return Findings(audit="local randomizers", findings=found, command=f"{command} --confidence {confidence:g}")


def _audited(names: Sequence[str], campaigns: int, shuffles: int, confidence: float, seed: int) -> Iterator[Finding]:
    for name in names:
        for epsilon in SMALL_EPSILONS:
            yield enumerated([RANDOMIZERS[name](domain, epsilon) for domain in SMALL])
        for at, epsilon in enumerate(LARGE_EPSILONS):
            yield by_likelihood(RANDOMIZERS[name](LARGE, epsilon), confidence, (seed, at))
        yield shuffled(RANDOMIZERS[name](SHUFFLED_DOMAIN, SHUFFLED_EPSILON), shuffles, confidence, (seed, 99))
    yield rare_words(campaigns, confidence, seed)


def enumerated(randomizers: Sequence[Randomizer]) -> Finding:
    """The largest exact epsilon of randomizers with one claim, over all whose choices can be played."""
    played = [each for each in randomizers if choices(each) <= MOST_CHOICES]
    results = [exact_epsilon(each) for each in played]
    epsilon, domains = max(result[0] for result in results), [each.domain for each in played]
    return Finding(
        subject=f"{played[0].name}, {min(domains)} to {max(domains)} values, every choice",
        measure="epsilon",
        claim=played[0].epsilon,
        lower=epsilon,
        estimate=epsilon,
        confidence=1.0,
        delta=0.0,
        samples=sum(result[1] for result in results),
        samples_of="choices",
        threat_model=ONE_REPORT,
        figures={"domains": domains},
    )


def by_likelihood(randomizer: Randomizer, confidence: float, seed: tuple[int, int]) -> Finding:
    """A large domain, by as many reports as bring the bound to within 2% of the claim."""
    reports = reports_within(randomizer, WITHIN, confidence=confidence)
    generator = np.random.default_rng(seed)
    shown = epsilon_of_reports(randomizer, reports, generator, confidence=confidence)
    return Finding(
        subject=f"{randomizer.name}, {randomizer.domain:,} values",
        measure="epsilon",
        claim=randomizer.epsilon,
        lower=shown.lower,
        estimate=shown.estimate,
        confidence=confidence,
        delta=0.0,
        samples=2 * reports,
        samples_of="reports",
        threat_model=ONE_REPORT,
        seed=seed[0],
    )


def shuffled(randomizer: Randomizer, runs: int, confidence: float, seed: tuple[int, int]) -> Finding:
    """Shuffled sums beside both upper bounds: of any randomizer, and of this one."""
    case = (randomizer.epsilon, SHUFFLED_REPORTS, SHUFFLED_DELTA)
    kind = PROVED[randomizer.name]
    own, anybody = (shuffle_epsilon(*case, each, randomizer.domain) for each in (kind, "any"))
    generator = np.random.default_rng(seed)
    bound = epsilon_of_shuffled(randomizer, SHUFFLED_REPORTS, runs, SHUFFLED_DELTA, generator, confidence=confidence)
    return Finding(
        subject=f"{SHUFFLED_REPORTS} shuffled reports, {randomizer.name}, {randomizer.domain} values",
        measure="epsilon",
        claim=own.epsilon_upper,
        lower=bound.lower,
        confidence=confidence,
        delta=SHUFFLED_DELTA,
        samples=2 * runs,
        samples_of="sums",
        threat_model=SHUFFLE,
        seed=seed[0],
        figures={
            "local_epsilon": randomizer.epsilon,
            "upper_of_any_randomizer": anybody.epsilon_upper,
            "upper_of_this_randomizer": own.epsilon_upper,
            "lower_by_computed_attack": own.epsilon_lower,
        },
    )


def rare_words(campaigns: int, confidence: float, seed: int) -> Finding:
    """How often a string of fewer than k contributors is output, beside the delta promised for it."""
    anonymity = Anonymity(k=20, delta=0.02)
    settings = DiscoverySettings(
        reports=LocalReportSettings(local_epsilon=4.0),
        users_per_layer=2_000,
        depth=3,
        prefixes=50,
        alphabet=Alphabet("abcdefgh"),
        anonymity=anonymity,
        resample_users=True,
        seed=seed,
    )
    seen = rare_output(settings, campaigns, seed, confidence=confidence)
    return Finding(
        subject=f"strings that {anonymity.k - 1} of {settings.users_per_layer:,} asked typed",
        measure="rate",
        claim=anonymity.delta,
        lower=seen.lower,
        estimate=seen.prefix / campaigns,
        confidence=confidence,
        samples=campaigns,
        samples_of="campaigns",
        threat_model=OUTPUTS,
        seed=seed,
        figures={"prefixes_output": seen.prefix, "words_output": seen.word, "rate_of_all_prefixes": seen.others},
    )


def _check(names: Sequence[str], campaigns: int, shuffles: int, seed: int) -> None:
    of_type("names", names, list, tuple)
    for name in names:
        if name not in RANDOMIZERS:
            raise InputError(f"no randomizer is called {name!r}; audit some of {', '.join(RANDOMIZERS)}.")
    if not names:
        raise InputError(f"no randomizer is named, so nothing is audited; name some of {', '.join(RANDOMIZERS)}.")
    for what, number, least in (
        ("campaigns", campaigns, FEWEST_CAMPAIGNS),
        ("shuffles", shuffles, FEWEST_CAMPAIGNS),
        ("seed", seed, 0),
    ):
        of_type(what, number, int)
        if number < least:
            raise InputError(f"{what}={number} must be {least} or more: fewer judge nothing.")
