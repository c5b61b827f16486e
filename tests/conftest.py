"""What every test shares: reproducible hypothesis runs without a clock (a kernel's first call compiles it)."""

from hypothesis import settings

settings.register_profile("torchrank", deadline=None, derandomize=True)
settings.load_profile("torchrank")
