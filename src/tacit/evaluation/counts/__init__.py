"""What devices count: histograms asked, one cell a device, their sums and what is released of them."""
