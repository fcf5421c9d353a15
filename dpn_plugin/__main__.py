"""``python -m dpn_plugin`` is the command ``dpn``."""

from dpn_plugin.cli import main

main()
