"""Recurrent networks: a cell, written once, and what follows from it in NumPy, in JAX and in ONNX's operators.

`cell` says what a cell is, `network` is the class to subclass. `scan` has the scores by JAX, `reader` a word at a time
in NumPy, `onnx` the operators of one word, and `onnx_training` a step of SGD with its derivatives.
"""
