"""The benchmark of tensor files; bench/store starts it."""
