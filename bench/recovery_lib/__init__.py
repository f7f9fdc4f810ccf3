"""The parts of bench/recovery: workloads, trainers, launchers, measuring, and what is promised."""
