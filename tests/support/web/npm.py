"""What npm runs in a copy of `web/`."""

import os
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = {"CI": "true", "NO_COLOR": "1", "NO_UPDATE_NOTIFIER": "1", "TACIT_PYTHON": sys.executable}
PATIENCE = 1_500  # seconds: all tests in a browser, beside three other processes of tests


def ran(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | ENVIRONMENT
    return subprocess.run(
        command, cwd=folder, env=environment, text=True, capture_output=True, timeout=PATIENCE, check=False
    )
