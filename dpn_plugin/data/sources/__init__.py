"""One file for each scheme; each has ``load(argument, *, split, root)``."""
