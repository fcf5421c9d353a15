"""The first call of a function in torch may take longer than hypothesis' deadline."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
