"""./dev bench server: the running daemon beside bare gRPC, beside the real Triton, and beside its own model alone."""
