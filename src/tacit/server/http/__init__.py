"""The paths that devices and operators ask, and what answers them."""
