"""The CIFG. `network` is its class; it is trained by programs of its own, each for one place where it is fast:

`loss`        private training and pre-training on accelerators: derivatives by hand, sentences stay padded
`packed`      private training on processors, in float32 and bfloat16: a compiled step over the real words alone
`on_device`   fine-tuning and ranking on one core; `on_device_loops` is what Numba compiles of it, and needs no JAX

They lay words out as their place wants it (padded, packed and compiled for a few sizes, or as long as they are): none
stands for another. Everything else follows from the cell (`recurrent`): a word at a time in NumPy, both graphs of ONNX,
and the graph that trains. `parameters` says what all of them share, `initial` how they begin.
"""
