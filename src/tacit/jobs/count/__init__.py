"""The job `count`: named statistics of clients' text as histograms or sums, exact and released."""
