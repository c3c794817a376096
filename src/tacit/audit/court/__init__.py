"""Other people's code on trial, and a museum of historic faults that an auditor must find.

An `exhibit` is a promise with code that breaks it and code that keeps it. `museum` lists twelve: `correlated`,
`accounts`, `randomizers`, `federations` and `own` re-make them in a few lines each. `environments` runs peers' own code
in an environment of its own, by the scripts in `peers/`. `job` holds the trial and what comes of it.
"""
