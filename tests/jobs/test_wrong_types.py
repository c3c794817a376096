"""A value of a wrong type is refused by every job: a sentence names the argument, and nothing is written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.errors import InputError
from tacit.privacy import Participation, Tree

LIMITS = Participation.worst_case(100, 10)
job: Any = tacit  # the type checker would refuse what is tried here

WRONG: dict[str, tuple[str, Callable[[], Any]]] = {
    "Address": ("port='80' is of the type str", lambda: job.Address(port="80")),
    "DecryptorAddress": ("port='80' is of the type str", lambda: job.DecryptorAddress.from_folder("0" * 64, "80")),
    "Policy": ("smallest_cohort='9' is of the type str", lambda: job.Policy(smallest_cohort="9")),
    "account": ("strategy='tree' is a name; give the strategy itself", lambda: job.account("tree", LIMITS, zcdp=1.0)),
    "account, limits": ("participation=100", lambda: job.account(Tree(), 100, zcdp=1.0)),
    "account, price": ("zcdp='1' is of the type str", lambda: job.account(Tree(), LIMITS, zcdp="1")),
    "account_population": ("population=3 is no path", lambda: job.account_population(3)),
    "audit_device": ("runs='40' is of the type str", lambda: job.audit_device(runs="40")),
    "audit_device, questions": ("questions='sums' is of", lambda: job.audit_device(questions="sums")),
    "audit_randomizer": ("names='k-ary' is of the type str", lambda: job.audit_randomizer(names="k-ary")),
    "audit_randomizer, seed": ("seed='1' is of the type str", lambda: job.audit_randomizer(seed="1")),
    "audit_court": ("seed='1' is of the type str", lambda: job.audit_court(seed="1")),
    "audit_court, peers": ("peers='opendp' is of", lambda: job.audit_court(peers="opendp")),
    "audit_court, folder": ("environments=3 is no", lambda: job.audit_court(peers=["opendp"], environments=3)),
    "audit_attack": ("settings={}", lambda: job.audit_attack(settings={})),
    "audit_attack, views": ("only='upload' is of the type str", lambda: job.audit_attack(only="upload")),
    "audit_attack, data": ("data=3 is no path", lambda: job.audit_attack(3)),
    "begin_population": ("clients=3 is of the type int", lambda: job.begin_population("b", clients=3)),
    "begin_population, budget": ("zcdp='4' is of", lambda: job.begin_population("b", clients="a", zcdp="4")),
    "account_run": ("run=3 is no path", lambda: job.account_run(3)),
    "audit_mechanism": ("mechanism=3 is no path", lambda: job.audit_mechanism(3)),
    "audit_mechanism, runs": ("runs='9' is of the type str", lambda: job.audit_mechanism("tree", runs="9")),
    "audit_mechanism, seed": ("seed='1' is of the type str", lambda: job.audit_mechanism("tree", seed="1")),
    "audit_run": ("recipe=3 is no path", lambda: job.audit_run(3)),
    "audit_run, settings": ("settings={}", lambda: job.audit_run("no.toml", settings={})),
    "compare": ("run=3 is no path", lambda: job.compare(3, 4)),
    "compare_mechanisms": ("participation=5", lambda: job.compare_mechanisms(5)),
    "count": ("settings={}", lambda: job.count("cache", "out", settings={})),
    "demo": ("out=3 is no path", lambda: job.demo(3)),
    "demo, quick": ("quick='no' is of the type str", lambda: job.demo(quick="no")),
    "design_mechanism": ("mechanism=3", lambda: job.design_mechanism(3, LIMITS)),
    "device_status": ("forget=1 is of the type int", lambda: job.device_status("state", forget=1)),
    "run_device": ("server=3 is of the type int", lambda: job.run_device(3, "cache", "state")),
    "run_device, client": ("client='0' is of", lambda: job.run_device("https://a", "cache", "state", client="0")),
    "run_device, state": ("state=3 is no path", lambda: job.run_device("https://a", "cache", 3)),
    "discover": ("settings={}", lambda: job.discover("folder:.", "v.json", "out", {})),
    "evaluate": ("models='run' is of the type str; give list or tuple", lambda: job.evaluate("run", "cache")),
    "evaluate, settings": ("settings={}", lambda: job.evaluate(["run"], "cache", settings={})),
    "export": ("run=3 is no path", lambda: job.export(3, "out")),
    "export, out": ("out=3 is no path", lambda: job.export("run", 3)),
    "export, locale": ("locale=3 is of the type int", lambda: job.export("run", "out", locale=3)),
    "export, quantize": ("quantize=8 is of the type int", lambda: job.export("run", "out", quantize=8)),
    "export, offensive": ("--offensive=3 is no path", lambda: job.export("run", "out", offensive=3)),
    "export_dictionary": ("run=3 is no path", lambda: job.export_dictionary(3, "out")),
    "export_dictionary, path": ("path=3 is no path", lambda: job.export_dictionary("run", 3)),
    "export_dictionary, trigrams": ("trigrams=1 is of", lambda: job.export_dictionary("run", "o", trigrams=1)),
    "extend_vocabulary": ("vocabulary=3 is no path", lambda: job.extend_vocabulary(3, 4)),
    "finish": ("run=3 is no path", lambda: job.finish(3)),
    "import_data": ("source=3", lambda: job.import_data(3, "out")),
    "import_data, lines": ("lines=3 is of the type int", lambda: job.import_data("folder:.", "out", lines=3)),
    "import_data, words": ("vocabulary='w.txt'", lambda: job.import_data("folder:.", "out", vocabulary="w.txt")),
    "decryptor": ("state=3 is no path", lambda: job.decryptor(3, least_reports=2)),
    "decryptor, reports": ("least_reports='9' is of the type str", lambda: job.decryptor("k", least_reports="9")),
    "ladder": ("data=3 is no path", lambda: job.ladder(3)),
    "ladder, models": ("models='run' is of the type str", lambda: job.ladder("cache", models="run")),
    "ladder, settings": ("settings={}", lambda: job.ladder("cache", settings={})),
    "load_model": ("path=None is no path", lambda: job.load_model(None)),
    "mix": ("ngram=3 is no path", lambda: job.mix(3, "out", counts="run")),
    "ngram": ("data=3 is no path", lambda: job.ngram(3, "out")),
    "new_recipe": ("data=3 is no path", lambda: job.new_recipe(3, epsilon=8)),
    "new_recipe, epsilon": ("epsilon='8' is of the type str", lambda: job.new_recipe("cache", epsilon="8")),
    "open_data": ("path=3 is no path", lambda: job.open_data(3)),
    "new_mixture": ("data=3 is no path", lambda: job.new_mixture(3, epsilon=1, public="public")),
    "open_run": ("path=3 is no path", lambda: job.open_run(3)),
    "noise_forecast": ("recipe=3 is no path", lambda: job.noise_forecast(3)),
    "personalize": ("settings={}", lambda: job.personalize("run", "cache", "out", settings={})),
    "plan": ("scenario='x'", lambda: job.plan("x", "tree", 3)),
    "plan_counts": ("clients='9' is of the type str", lambda: job.plan_counts("cache", clients="9", release=None)),
    "plan_epsilon": ("populations=300 is of the type int", lambda: job.plan_epsilon(300)),
    "plan_epsilon, training": ("training='long' is of", lambda: job.plan_epsilon([300], training="long")),
    "plan_production": ("scenario='x'", lambda: job.plan_production("x", 3, "out", None)),
    "preview_data": ("source=3", lambda: job.preview_data(3)),
    "preview_data, text": ("text=3 is of the type int", lambda: job.preview_data("folder:.", text=3)),
    "pretrain": ("data=3 is no path", lambda: job.pretrain(3, "out")),
    "publish": ("bundle=3 is no path", lambda: job.publish(3, "key")),
    "publish, key": ("operator_key=3 is no path", lambda: job.publish("page", 3)),
    "report": ("run=3 is no path", lambda: job.report(3)),
    "resume": ("run=3 is no path", lambda: job.resume(3)),
    "serve": ("recipes=3 is of the type int", lambda: job.serve(3, "out")),
    "serve, workers": ("workers='2' is of", lambda: job.serve(["r.toml"], "out", workers="2")),
    "serve, out": ("out=3 is no path", lambda: job.serve(["r.toml"], 3)),
    "simulate": ("settings=3 is no path", lambda: job.simulate(3)),
    "statement": ("run=4 is no path", lambda: job.statement(4)),
    "suggest": ("prompts='I will' is of the type str; give list or tuple", lambda: job.suggest("run", "I will")),
    "suggest, model": ("model=3 is no path", lambda: job.suggest(3, ["I will"])),
    "sweep": ("recipe=3 is no path", lambda: job.sweep(3, "out", {"rounds.rounds": [1, 2]})),
    "sweep, grid": ("grid='rounds' is of the type str", lambda: job.sweep("r.toml", "out", "rounds")),
    "train": ("recipe=3 is no path", lambda: job.train(3, "out")),
    "train, seed": ("seed='a' is of the type str", lambda: job.train("no.toml", "out", seed="a")),
    "train, until": ("until=True is of the type bool", lambda: job.train("no.toml", "out", until=True)),
    "train_mixture": ("recipe=3 is no path", lambda: job.train_mixture(3, "out")),
    "train_mixture, seed": ("seed='a' is of the type str", lambda: job.train_mixture("no.toml", "out", seed="a")),
    "tune": ("recipe=3 is no path", lambda: job.tune(3, "out")),
    "type_ab": ("settings={}", lambda: job.type_ab("a", "b", "cache", "out", settings={})),
    "type_ab, model": ("a=3 is no path", lambda: job.type_ab(3, "b", "cache", "out")),
    "type_ab, data": ("data=3 is no path", lambda: job.type_ab("a", "b", 3, "out")),
    "type_ab, release": ("release=8", lambda: job.type_ab("a", "b", "cache", "out", release=8)),
    "type_ab, seed": ("seed='1' is of the type str", lambda: job.type_ab("a", "b", "cache", "out", seed="1")),
    "type_engine": ("settings={}", lambda: job.type_engine("a", "e", "d", "cache", settings={})),
    "type_engine, engine": ("engine=3 is of the type int", lambda: job.type_engine("a", 3, "d", "cache")),
    "type_engine, data": ("data=3 is no path", lambda: job.type_engine("a", "e", "d", 3)),
    "type_engine, time": ("timeout='5' is of", lambda: job.type_engine("a", "e", "d", "c", timeout="5")),
    "verify": ("statement=3 is no path", lambda: job.verify(3)),
    "verify_log": ("log=3 is of the type int", lambda: job.verify_log("run", 3)),
}


def test_every_name_at_the_door_is_tried() -> None:
    assert {name.partition(",")[0] for name in WRONG} == set(tacit.__all__) - {"doctor"}  # it takes nothing


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_type_is_named_and_nothing_is_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sentence, call = WRONG[name]
    with pytest.raises(InputError) as refusal:
        call()
    assert sentence in str(refusal.value)
    assert list(tmp_path.iterdir()) == []
