"""Every detector on every family of backbones: what fits together, and how well it does."""
