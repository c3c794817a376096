"""The job `count`: named statistics of clients' text as histograms, exact and released."""
