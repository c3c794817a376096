"""ONNX graphs of any network: suggesting, scoring, training, and int8 or int4 tables."""
