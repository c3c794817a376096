"""Attacks on ourselves and on others: what an implementation leaks, beside what it claims.

`finding` is what every audit ends with. `mechanism` plays the worst client of every mechanism, `device` looks for text
in what a device does, `one_run` puts canaries into one training, `attack` reads words from updates and models,
`randomizer` asks local randomizers, and `court` audits other people's code and a museum of historic faults.
The bounds themselves are in `tacit.privacy.empirical`.
"""
