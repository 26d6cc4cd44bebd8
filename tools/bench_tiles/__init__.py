"""./dev bench tiles: tiles of large pictures in the daemon, beside SAHI, which cuts them in the client."""
