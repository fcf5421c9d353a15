"""What all tests share."""

from hypothesis import settings

# the first call of a function in torch may take longer than hypothesis' deadline
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
