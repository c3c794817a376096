"""tacit: learning from what people type without seeing it.

Every name is loaded when it is used, so that `import tacit` costs nothing and `tacit.account` loads no accelerator's
libraries. docs/api.md says what each is for.
"""

TYPE_CHECKING = False  # as type checkers read it; `typing` itself would be most of what this file costs
if TYPE_CHECKING:
    from typing import Any

    from tacit.deployment.address import Address
    from tacit.deployment.client.device import device
    from tacit.deployment.client.policy import Policy
    from tacit.deployment.keeper_server import KeeperAddress
    from tacit.deployment.logged_run import verify_log
    from tacit.deployment.serve import serve
    from tacit.jobs.account import account
    from tacit.jobs.account_run import account_run
    from tacit.jobs.demo import demo
    from tacit.jobs.design import compare_mechanisms, design_mechanism
    from tacit.jobs.discover import discover
    from tacit.jobs.doctor import doctor
    from tacit.jobs.evaluate import evaluate
    from tacit.jobs.export import export
    from tacit.jobs.import_data import import_data, open_data
    from tacit.jobs.keeper import keeper
    from tacit.jobs.new_recipe import new_recipe
    from tacit.jobs.outlook import outlook
    from tacit.jobs.personalize import personalize
    from tacit.jobs.plan import plan
    from tacit.jobs.plan_epsilon import plan_epsilon
    from tacit.jobs.plan_production import plan_production
    from tacit.jobs.population import account_population, begin_population
    from tacit.jobs.pretrain import pretrain
    from tacit.jobs.report import compare, report
    from tacit.jobs.resume import resume
    from tacit.jobs.simulate import simulate
    from tacit.jobs.statement import statement, verify
    from tacit.jobs.suggest import suggest
    from tacit.jobs.train import train
    from tacit.jobs.tune import tune
    from tacit.jobs.type_ab import type_ab
    from tacit.jobs.vocabulary import extend_vocabulary
    from tacit.keyboard.model_folder import load_model
    from tacit.runs.folder import open_run

__version__ = "0.1.0"

_HOME = {
    "Address": "tacit.deployment.address",
    "KeeperAddress": "tacit.deployment.keeper_server",
    "Policy": "tacit.deployment.client.policy",
    "account": "tacit.jobs.account",
    "account_population": "tacit.jobs.population",
    "account_run": "tacit.jobs.account_run",
    "begin_population": "tacit.jobs.population",
    "compare": "tacit.jobs.report",
    "compare_mechanisms": "tacit.jobs.design",
    "demo": "tacit.jobs.demo",
    "design_mechanism": "tacit.jobs.design",
    "device": "tacit.deployment.client.device",
    "discover": "tacit.jobs.discover",
    "doctor": "tacit.jobs.doctor",
    "evaluate": "tacit.jobs.evaluate",
    "export": "tacit.jobs.export",
    "extend_vocabulary": "tacit.jobs.vocabulary",
    "import_data": "tacit.jobs.import_data",
    "keeper": "tacit.jobs.keeper",
    "load_model": "tacit.keyboard.model_folder",
    "new_recipe": "tacit.jobs.new_recipe",
    "open_data": "tacit.jobs.import_data",
    "open_run": "tacit.runs.folder",
    "outlook": "tacit.jobs.outlook",
    "personalize": "tacit.jobs.personalize",
    "plan": "tacit.jobs.plan",
    "plan_epsilon": "tacit.jobs.plan_epsilon",
    "plan_production": "tacit.jobs.plan_production",
    "pretrain": "tacit.jobs.pretrain",
    "report": "tacit.jobs.report",
    "resume": "tacit.jobs.resume",
    "serve": "tacit.deployment.serve",
    "simulate": "tacit.jobs.simulate",
    "statement": "tacit.jobs.statement",
    "suggest": "tacit.jobs.suggest",
    "train": "tacit.jobs.train",
    "tune": "tacit.jobs.tune",
    "type_ab": "tacit.jobs.type_ab",
    "verify": "tacit.jobs.statement",
    "verify_log": "tacit.deployment.logged_run",
}
__all__ = [
    "Address",
    "KeeperAddress",
    "Policy",
    "account",
    "account_population",
    "account_run",
    "begin_population",
    "compare",
    "compare_mechanisms",
    "demo",
    "design_mechanism",
    "device",
    "discover",
    "doctor",
    "evaluate",
    "export",
    "extend_vocabulary",
    "import_data",
    "keeper",
    "load_model",
    "new_recipe",
    "open_data",
    "open_run",
    "outlook",
    "personalize",
    "plan",
    "plan_epsilon",
    "plan_production",
    "pretrain",
    "report",
    "resume",
    "serve",
    "simulate",
    "statement",
    "suggest",
    "train",
    "tune",
    "type_ab",
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
