"""A replica to be killed or stopped: `victim_replica.py CALL PATH TRUST [ARGS…]` runs one body of `isolated_bodies`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(folder) for folder in Path(__file__).parents[:3]]

from trial import ROOT, Trial  # noqa: E402

from scheduler.kinds.python import PythonKind  # noqa: E402

if __name__ == "__main__":
    call, path, trust, *rest = sys.argv[1:]
    kind = PythonKind(ROOT)
    trial = Trial(kind, call, {"path": path, **({"then": rest[0]} if rest else {})}, trust=float(trust)).begin()
    from trial import pids_at

    pids_at(Path(path))
    Path(f"{path}.zygote").write_text(str(kind.pool.zygote))
    trial.ending(3600)
