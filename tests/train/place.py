"""Where things are, for tests that run from any folder."""
import os
import sys
from pathlib import Path

os.environ.setdefault("TQDM_DISABLE", "1")
ROOT = Path(__file__).resolve().parents[2]
SHEAF = Path(os.environ.get("SHEAF_BINARY", ROOT / "build/sheaf"))
sys.path.insert(0, str(ROOT / "train"))
