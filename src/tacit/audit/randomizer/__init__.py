"""Local randomizers, through the function that a device runs: exactly where all its choices can be counted, else by
likelihood ratios; their shuffled sums; and the words that a discovery outputs though too few typed them.
"""
