"""tacit: learning from what people type without seeing it.

Every name is loaded when it is used, so that `import tacit` costs nothing and `tacit.account` loads no accelerator's
libraries. docs/api.md says what each is for.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.jobs.account import account
    from tacit.jobs.design import compare_mechanisms, design_mechanism
    from tacit.jobs.import_data import import_data, open_data
    from tacit.jobs.report import compare, report
    from tacit.jobs.statement import verify

__version__ = "0.1.0"

_HOME = {
    "account": "tacit.jobs.account",
    "compare": "tacit.jobs.report",
    "compare_mechanisms": "tacit.jobs.design",
    "design_mechanism": "tacit.jobs.design",
    "import_data": "tacit.jobs.import_data",
    "open_data": "tacit.jobs.import_data",
    "report": "tacit.jobs.report",
    "verify": "tacit.jobs.statement",
}
__all__ = [
    "account",
    "compare",
    "compare_mechanisms",
    "design_mechanism",
    "import_data",
    "open_data",
    "report",
    "verify",
]


def __getattr__(name: str) -> Any:
    """PEP 562: the name from where it lives, the first time it is asked for."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'tacit' has no attribute '{name}'; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
