"""Numbers of the marks and phases that a rank writes to its timeline (docs/format-ring.md): append, never renumber.

Plain numbers, not enumerations: a mark must cost less than a microsecond.
"""

from __future__ import annotations

ATTACHED = 0
LOOP_BEGIN = 1
STEP_BEGIN = 2
GRADS_READY = 3
COLLECTED = 4
APPLIED = 5
STEP_END = 6
PHASE = 7
GROUP_BEGIN = 8
GROUP_MADE = 9
RESTORE_BEGIN = 10
RESTORED = 11
SNAPSHOT_BEGIN = 12
SNAPSHOT_END = 13
FINISHED = 14

# Phases
START = 0
COMPILE = 1
TRAIN = 2
BETWEEN = 3
EVALUATE = 4
CHECKPOINT = 5
RECOVER = 6
AFTER = 7

PHASES = {
    "start": START,
    "compile": COMPILE,
    "train": TRAIN,
    "between": BETWEEN,
    "evaluate": EVALUATE,
    "checkpoint": CHECKPOINT,
    "recover": RECOVER,
    "after": AFTER,
}
