"""./dev bench server: compares the running daemon with bare gRPC, with Triton, and with its model in a plain loop."""
