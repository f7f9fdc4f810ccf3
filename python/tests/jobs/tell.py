"""Says what it finds of itself, as JSON on one line; then does what its first argument says."""

import atexit
import json
import os
import random
import sys
import threading
import time

import __main__
import torch

if sys.argv[1:2] != ["quiet"]:
    print(
        json.dumps(
            {
                "argv": sys.argv,
                "name": __name__,
                "file": __file__,
                "main": __main__.__dict__ is globals(),
                "names": sorted(name for name in globals() if not name.startswith("__")),
                "path0": sys.path[0],
                "cwd": os.getcwd(),
                "pid": os.getpid(),
                "parent": os.getppid(),
                "session": os.getsid(0),
                "group": os.getpgid(0),
                "rank": os.environ.get("RANK"),
                "gone": os.environ.get("OPENBLAS_NUM_THREADS"),
                "threads": torch.get_num_threads(),
                "draws": [random.random(), torch.rand(1).item(), float(__import__("numpy").random.rand())],
                "title": open("/proc/self/cmdline").read().replace("\0", " ").strip(),
            }
        ),
        flush=True,
    )
atexit.register(print, "at exit", flush=True)


def fail() -> None:
    raise ValueError("the script's own mistake")


what = sys.argv[1] if len(sys.argv) > 1 else ""
if what == "fail":
    fail()
elif what == "exit":
    sys.exit(int(sys.argv[2]))
elif what == "complain":
    sys.exit("no data here")
elif what == "thread":
    threading.Thread(target=lambda: (time.sleep(0.3), print("thread done", flush=True))).start()
elif what == "fork":
    child = os.fork()
    if child == 0:
        time.sleep(600)
    print("child", child, flush=True)
    time.sleep(600)
elif what == "wait":
    time.sleep(600)
