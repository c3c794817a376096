"""The attack on keyboards' models of arXiv:2210.16947: words and sentences, read from what a server sees of training.

`population` trains a public network and people's uploads, `views` is what is seen of them, `words` and `sentences` are
the attack, `scores` compares it with guessing, and `job` plays all of it.
"""
