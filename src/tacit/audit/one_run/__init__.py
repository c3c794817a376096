"""Canaries in one training run: what its models give away of them, beside what the run promises.

`settings` says how many there are, `canaries` what they send, `joined` puts them among a cache's clients, `places` says
in which rounds they come. `released` keeps of each round what finds them again, `scores` makes bounds of it, `exposure`
ranks random sentences, and `job` is all of it in order.

Training itself knows nothing of canaries: they are clients of a cache, an algorithm and a sampler, which any program
may give, and their updates are clipped, summed and noised by the same code as everybody's.
"""
