"""The version of this build, alone: what names it in a record needs none of the package's names."""

__version__ = "0.1.0"
