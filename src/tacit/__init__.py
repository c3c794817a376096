"""tacit: learning from what people type without seeing it.

Every name is loaded when it is used, so that `import tacit` costs nothing and `tacit.account` loads no accelerator's
libraries. docs/api.md says what each is for.
"""

from tacit.version import __version__ as __version__

TYPE_CHECKING = False  # as type checkers read it; `typing` itself would be most of what this file costs
if TYPE_CHECKING:
    from typing import Any

    from tacit.audit.attack.job import audit_attack
    from tacit.audit.court.job import audit_court
    from tacit.audit.device.job import audit_device
    from tacit.audit.mechanism.job import audit_mechanism
    from tacit.audit.one_run.job import audit_run
    from tacit.audit.randomizer.job import audit_randomizer
    from tacit.device.device import run_device
    from tacit.device.owner import device_status
    from tacit.device.policy import Policy
    from tacit.jobs.account.job import account
    from tacit.jobs.account.population import account_population, begin_population
    from tacit.jobs.account.run import account_run
    from tacit.jobs.count.job import count
    from tacit.jobs.decryptor import decryptor
    from tacit.jobs.demo import demo
    from tacit.jobs.design import compare_mechanisms, design_mechanism
    from tacit.jobs.discover.job import discover
    from tacit.jobs.doctor import doctor
    from tacit.jobs.evaluate.job import evaluate
    from tacit.jobs.export import export, export_dictionary
    from tacit.jobs.finish import finish
    from tacit.jobs.import_data import import_data, open_data
    from tacit.jobs.ladder import ladder
    from tacit.jobs.mix import mix
    from tacit.jobs.ngram import ngram
    from tacit.jobs.personalize.job import personalize
    from tacit.jobs.plan.counts import plan_counts
    from tacit.jobs.plan.epsilon import plan_epsilon
    from tacit.jobs.plan.job import plan
    from tacit.jobs.plan.new_mixture import new_mixture
    from tacit.jobs.plan.new_recipe import new_recipe
    from tacit.jobs.plan.production import plan_production
    from tacit.jobs.plan.simulate import simulate
    from tacit.jobs.pretrain import pretrain
    from tacit.jobs.preview_data import preview_data
    from tacit.jobs.report import compare, report
    from tacit.jobs.resume import resume
    from tacit.jobs.statement import statement, verify
    from tacit.jobs.suggest import suggest
    from tacit.jobs.train.job import train
    from tacit.jobs.train.mixture import train_mixture
    from tacit.jobs.train.noise_forecast import noise_forecast
    from tacit.jobs.train.sweep import sweep
    from tacit.jobs.tune.job import tune
    from tacit.jobs.type_ab.engine import type_engine
    from tacit.jobs.type_ab.job import type_ab
    from tacit.jobs.vocabulary import extend_vocabulary
    from tacit.keyboard.model_folder import load_model
    from tacit.protocol.address import Address
    from tacit.runs.folder import open_run
    from tacit.server.http.decryptor_server import DecryptorAddress
    from tacit.server.log.logged_bundle import publish
    from tacit.server.log.logged_run import verify_log
    from tacit.server.serve import serve

_HOME = {
    "Address": "tacit.protocol.address",
    "DecryptorAddress": "tacit.server.http.decryptor_server",
    "Policy": "tacit.device.policy",
    "account": "tacit.jobs.account.job",
    "account_population": "tacit.jobs.account.population",
    "account_run": "tacit.jobs.account.run",
    "audit_attack": "tacit.audit.attack.job",
    "audit_court": "tacit.audit.court.job",
    "audit_device": "tacit.audit.device.job",
    "audit_mechanism": "tacit.audit.mechanism.job",
    "audit_randomizer": "tacit.audit.randomizer.job",
    "audit_run": "tacit.audit.one_run.job",
    "begin_population": "tacit.jobs.account.population",
    "compare": "tacit.jobs.report",
    "compare_mechanisms": "tacit.jobs.design",
    "count": "tacit.jobs.count.job",
    "demo": "tacit.jobs.demo",
    "design_mechanism": "tacit.jobs.design",
    "device_status": "tacit.device.owner",
    "discover": "tacit.jobs.discover.job",
    "doctor": "tacit.jobs.doctor",
    "evaluate": "tacit.jobs.evaluate.job",
    "export": "tacit.jobs.export",
    "export_dictionary": "tacit.jobs.export",
    "extend_vocabulary": "tacit.jobs.vocabulary",
    "finish": "tacit.jobs.finish",
    "import_data": "tacit.jobs.import_data",
    "decryptor": "tacit.jobs.decryptor",
    "ladder": "tacit.jobs.ladder",
    "load_model": "tacit.keyboard.model_folder",
    "mix": "tacit.jobs.mix",
    "new_mixture": "tacit.jobs.plan.new_mixture",
    "new_recipe": "tacit.jobs.plan.new_recipe",
    "open_data": "tacit.jobs.import_data",
    "open_run": "tacit.runs.folder",
    "ngram": "tacit.jobs.ngram",
    "noise_forecast": "tacit.jobs.train.noise_forecast",
    "personalize": "tacit.jobs.personalize.job",
    "plan": "tacit.jobs.plan.job",
    "plan_counts": "tacit.jobs.plan.counts",
    "plan_epsilon": "tacit.jobs.plan.epsilon",
    "plan_production": "tacit.jobs.plan.production",
    "pretrain": "tacit.jobs.pretrain",
    "preview_data": "tacit.jobs.preview_data",
    "publish": "tacit.server.log.logged_bundle",
    "report": "tacit.jobs.report",
    "resume": "tacit.jobs.resume",
    "run_device": "tacit.device.device",
    "serve": "tacit.server.serve",
    "simulate": "tacit.jobs.plan.simulate",
    "statement": "tacit.jobs.statement",
    "suggest": "tacit.jobs.suggest",
    "sweep": "tacit.jobs.train.sweep",
    "train": "tacit.jobs.train.job",
    "train_mixture": "tacit.jobs.train.mixture",
    "tune": "tacit.jobs.tune.job",
    "type_ab": "tacit.jobs.type_ab.job",
    "type_engine": "tacit.jobs.type_ab.engine",
    "verify": "tacit.jobs.statement",
    "verify_log": "tacit.server.log.logged_run",
}
__all__ = [
    "Address",
    "DecryptorAddress",
    "Policy",
    "account",
    "account_population",
    "account_run",
    "audit_attack",
    "audit_court",
    "audit_device",
    "audit_mechanism",
    "audit_randomizer",
    "audit_run",
    "begin_population",
    "compare",
    "compare_mechanisms",
    "count",
    "decryptor",
    "demo",
    "design_mechanism",
    "device_status",
    "discover",
    "doctor",
    "evaluate",
    "export",
    "export_dictionary",
    "extend_vocabulary",
    "finish",
    "import_data",
    "ladder",
    "load_model",
    "mix",
    "new_mixture",
    "new_recipe",
    "ngram",
    "noise_forecast",
    "open_data",
    "open_run",
    "personalize",
    "plan",
    "plan_counts",
    "plan_epsilon",
    "plan_production",
    "pretrain",
    "preview_data",
    "publish",
    "report",
    "resume",
    "run_device",
    "serve",
    "simulate",
    "statement",
    "suggest",
    "sweep",
    "train",
    "train_mixture",
    "tune",
    "type_ab",
    "type_engine",
    "verify",
    "verify_log",
]


def __getattr__(name: str) -> "Any":
    """PEP 562: the name from where it lives, the first time it is asked for."""
    import importlib

    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'tacit' has no attribute '{name}'; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
