"""Options made from settings: what a field says is what `--help` says, and every default is read back as itself."""

from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from tacit.cli.from_settings import Named, Options, declared_by
from tacit.cli.options import command
from tacit.compute import Hardware
from tacit.discovery.settings import DiscoverySettings
from tacit.errors import InputError
from tacit.evaluation.counts.histograms import Buckets
from tacit.evaluation.personalize.fine_tuning import Grid
from tacit.evaluation.settings import EvaluationSettings, PersonalizationSettings
from tacit.evaluation.type_ab.settings import TypingSettings
from tacit.planning.tuning import TuningSettings

SETTINGS = (
    *(DiscoverySettings, EvaluationSettings, Grid, Hardware),
    *(PersonalizationSettings, TuningSettings, TypingSettings),
)


@dataclass(frozen=True, kw_only=True)
class Oven:
    """What a part of settings has."""

    heat: Annotated[float, "How hot."] = 180.0
    shelf: int = 2  # no option


@dataclass(frozen=True, kw_only=True)
class Bread:
    """Settings as any command has them."""

    flour: Annotated[str, "Of what."]
    grams: Annotated[tuple[int, ...], "How much."] = (500, 250)
    salt: Annotated[tuple[float, ...] | None, "How salty.", "0.02,0.03"] = None
    crust: Annotated[Literal["thin", "thick"], "thin or thick."] = "thin"
    seeded: Annotated[bool, "With seeds."] = False
    sizes: Annotated[Buckets, "Where one size ends."] = field(default_factory=lambda: Buckets((1.0, 2.5)))
    oven: Oven = field(default_factory=lambda: Oven(heat=220.0, shelf=3))
    baker: str | None = None  # no option


found: list[Bread] = []


@command
def bake(bread: Annotated[Options[Bread], Named(salt="sea_salt")], baker: str = "Ana") -> None:
    """Bake."""
    found.append(bread.settings(baker=baker))


def baked(*words: str) -> Bread:
    """What the command made of these words."""
    app = typer.Typer()
    app.command()(bake)
    result = CliRunner().invoke(app, list(words))
    if result.exit_code:
        raise InputError(result.stderr)
    return found.pop()


def test_what_is_left_out_is_the_default() -> None:
    assert baked("--flour", "rye") == Bread(flour="rye", baker="Ana")


def test_what_is_given_is_read_by_its_type() -> None:
    made = baked(
        *("--flour", "rye", "--grams", "1,2,3", "--sea-salt", "0.1", "--crust", "thick", "--seeded"),
        *("--sizes", "3,4", "--heat", "200", "--baker", "Eva"),
    )
    assert made == Bread(
        flour="rye",
        grams=(1, 2, 3),
        salt=(0.1,),
        crust="thick",
        seeded=True,
        sizes=Buckets((3.0, 4.0)),
        oven=Oven(heat=200.0, shelf=3),  # what is no option is the holder's
        baker="Eva",
    )
    assert baked("--flour", "rye", "--sea-salt", "").salt is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--sea-salt", "x"), "--sea-salt 'x' is not a list of numbers; write for example 0.02,0.03."),
        (("--grams", "1.5"), "--grams '1.5' is no whole number."),
        (("--sizes", "2,1"), "do not increase"),
        (("--heat", "inf"), "--heat inf is no finite number"),
    ],
)
def test_what_cannot_be_read_is_refused_by_the_name_of_its_option(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(InputError) as refused:
        baked("--flour", "rye", *words)
    assert says in str(refused.value)


def test_help_is_what_the_field_says() -> None:
    app = typer.Typer()
    app.command()(bake)
    page = " ".join(CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).stdout.split())
    for line in ("How much. [default: 500,250]", "Of what. [required]", "How hot. [default: 220.0]", "--sea-salt"):
        assert line in page, line
    assert "shelf" not in page and "--no-seeded" not in page


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: str(each.__name__))
def test_every_default_is_read_back_as_itself(settings: type[Any]) -> None:
    declared = list(declared_by(settings))
    assert declared and len({each.name for each in declared}) == len(declared)
    for each in declared:
        shown = each.parameter.default
        if each.default is not MISSING:
            assert each.read(shown) == each.default, each.name
            assert shown is None or isinstance(shown, str | int | float | bool | Path), each.name
