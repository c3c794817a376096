"""A model that counts: interpolated Kneser-Ney n-grams in small tables, read in NumPy.

`kneser_ney`  counts of a text, and the probabilities that they smooth to
`tables`      the same as the arrays of a file, a byte a probability, and one context's distribution from them
`reader`      a model folder as a keyboard reads it
"""
