"""Live pages of run folders: who looks sees what a report says, while the run goes on.

    view(folders, ...)     serves them until it is interrupted

Pages are made on the server (`pages/`, `templates/`), each with a JSON twin, and are read without script; a small one
(`static/view.js`) brings what changed, moves sliders and points. The room only reads: `folders.py` says what may be
read, `looks.py` how a run is read without writing, and `guard.py` who may look.
"""

from tacit.view.serve import Viewing, view

__all__ = ["Viewing", "view"]
