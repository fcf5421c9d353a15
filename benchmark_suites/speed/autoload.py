"""
Time what ``import torch`` does for us.

    python benchmark_suites/speed/autoload.py

imports torch with its autoload switched off in fresh interpreters, then loads and calls our entry
point as torch would have done. It prints the ratio of the best times, and exits with 1 if it is
above the limit, or if the entry point imported anything but its own module.
"""

import json
import os
import subprocess
import sys

ROUNDS = 5
#: the largest permitted share of `import torch`
LIMIT = 0.01

CHILD = """
import json, sys, time
start = time.perf_counter()
import torch
torch_time = time.perf_counter() - start
from importlib.metadata import entry_points
(point,) = entry_points(group="torch.backends", name="dpn_plugin")
before = set(sys.modules)
start = time.perf_counter()
point.load()()
ours = time.perf_counter() - start
imported = sorted(set(sys.modules) - before)
(finder,) = [each for each in sys.meta_path if type(each).__module__ == "dpn_plugin_autoload"]
start = time.perf_counter()
for _ in range(1000):
    finder.find_spec("some.module", None, None)
ours += time.perf_counter() - start  # `import torch` finds about as many modules
print(json.dumps([torch_time, ours, imported]))
"""


def measured() -> tuple[float, float, list[str]]:
    """Return the seconds of torch and of the entry point, and the modules that it imported."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, "-c", CHILD]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    torch_time, ours, imported = json.loads(done.stdout)
    return torch_time, ours, imported


def main() -> None:
    """Print the times and their ratio; exit with 1 if it is above the limit."""
    measured()  # the files are in memory and compiled after that
    rounds = [measured() for _ in range(ROUNDS)]
    torch_time = min(seconds for seconds, _, _ in rounds)
    ours = min(seconds for _, seconds, _ in rounds)
    modules = {name for _, _, imported in rounds for name in imported}
    share = ours / torch_time
    print(f"import torch {torch_time * 1e3:.0f} ms, ours {ours * 1e3:.2f} ms: {share:.2%}")
    print(f"modules imported: {', '.join(sorted(modules))}")
    sys.exit(share > LIMIT or modules != {"dpn_plugin_autoload"})


if __name__ == "__main__":
    main()
