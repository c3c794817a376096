"""How much privacy a mechanism leaks at least, from what it was seen to do: lower bounds, each with a confidence.

A *canary* is somebody whose taking part is tested, and a *score* is a number that is larger the more likely the canary
was there. `thresholds` takes any scores of many runs, `normal_scores` and `normal_pairs` those whose law is normal,
`one_run` guesses about many canaries of one run, and `sequential` scores as they come, with leave to stop at any time.
`error_rates` says what the two errors of one test show of epsilon and mu, and `samples` what is not a sample.

Every bound is one-sided: it lies above the true value with a probability of at most 1 - confidence, if the canaries,
the runs and the threshold were not chosen by the same scores. It says nothing of how much more may leak.
"""
