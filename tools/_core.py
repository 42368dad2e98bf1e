"""The portable core (lib/millpond), and what the host knows of the firmware, importable here.

The core lives in the repository, not in the environment, and imports `const` from MicroPython's
own `micropython` module, for which a stand-in is put in place where there is none. Both are done
here, inside this process, and never through PYTHONPATH: there they would reach every other Python
that this one starts.
"""

import importlib.util
import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_LIB = str(ROOT / "lib")

if _LIB not in sys.path:
    sys.path.insert(0, _LIB)
if importlib.util.find_spec("micropython") is None:
    _stand_in = types.ModuleType("micropython")
    _stand_in.const = lambda value: value  # type: ignore[attr-defined]
    sys.modules["micropython"] = _stand_in

from firmware.sensors.plant import TAGS as PLANT_TAGS  # noqa: E402
from millpond import batch  # noqa: E402
from millpond.clock import UNKNOWN_BELOW, Clock  # noqa: E402
from millpond.reading import KIND_SIZES  # noqa: E402

__all__ = ("KIND_SIZES", "PLANT_TAGS", "ROOT", "UNKNOWN_BELOW", "Clock", "batch")
