"""Every detector on every family of backbones: which combinations work, and how well."""
