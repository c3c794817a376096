"""What devices count: the histograms of a question, one cell a device, their sums and what is released of them."""
