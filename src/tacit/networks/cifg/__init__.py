"""The CIFG-LSTM: the network, its fast loops, its part on a device, its ONNX graphs."""
