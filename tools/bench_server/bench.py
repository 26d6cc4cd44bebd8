"""What the parts share: the servers under the same load in turns, and the cells of their tables."""

from tools.bench_server.load import take_turns, with_processor

SIZES = {"256 B": (1, 1, 1, 8, 8), "150 kB": (1, 1, 1, 192, 200), "8 MB": (1, 1, 2, 1000, 1000)}
MANY = 32
# Heads of the cells that measured() returns, and of the candidate's name before them.
HEAD = ["", "p50", "p99", "calls/s", "CPU a call", "p50, against", "calls/s, against", "CPU, against"]


def whole(value):
    return f"{value:,.0f}"


def tenths(value):
    return f"{value:,.1f}"


def times(value):
    return f"{value:.2f}"


def measured(candidate, base):
    """Table cells of one candidate, compared with `base`."""
    return [whole(candidate.p50), whole(candidate.p99), whole(candidate.rate), tenths(candidate.processor),
            times(candidate.p50 / base.p50), times(candidate.rate / base.rate),
            times(candidate.processor / base.processor)]


class Bench:
    def __init__(self, page, load, build, peers, folder, seconds, rounds):
        self.page, self.load, self.build, self.peers = page, load, build, peers
        self.folder, self.seconds, self.rounds = folder, seconds, rounds

    def turns(self, servers, load):
        """Measures each of `servers` in turns by `load(server)`, a function of a number of seconds."""
        candidates = {name: with_processor(server, load(server)) for name, server in servers.items()}
        return take_turns(candidates, self.seconds, self.rounds)

    def against(self, servers, model, shape, clients, rate=0):
        """Applies the same load to each of `servers`, in turns."""
        def load(server):
            return lambda seconds: self.load(server.url, model, clients, seconds, shape=shape, rate=rate)
        return self.turns(servers, load)

    def repository(self, name):
        root = self.folder / name
        root.mkdir()
        return root
