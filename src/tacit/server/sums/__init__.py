"""Reports added up, in memory, in the store and under encryption."""
