"""Real data sets that lie beside the checkout and are not part of it."""

from pathlib import Path

import pytest

#: the folder of data sets, where one is there
#: the folder of data sets, where one is there
REAL_DATA = next(
    (p / "shared" / "data" for p in Path(__file__).parents if (p / "shared" / "data").is_dir()), Path("absent")
)
needs_real_data = pytest.mark.skipif(not REAL_DATA.is_dir(), reason="no data sets lie beside this checkout")
