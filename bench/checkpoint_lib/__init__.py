"""The benchmark of asynchronous checkpoints; bench/checkpoint starts it."""
