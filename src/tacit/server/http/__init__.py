"""The paths that devices and operators request, and their handlers."""
