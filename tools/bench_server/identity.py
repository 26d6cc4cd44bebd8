"""The identity model beside a bare gRPC server, by two clients."""

import contextlib

from tools.bench_server import h2load, servers
from tools.bench_server.bench import HEAD, MANY, SIZES, measured, tenths, times, whole
from tools.bench_server.servers import write_model

# The most processor time for each call, against bare gRPC.
MAX_PROCESSOR = {"256 B": 0.35, "150 kB": 0.8}
# Connections, and streams on each of them.
H2LOADS = {"256 B": ((1, 1), (8, 4)), "150 kB": ((8, 1), (8, 4))}


@contextlib.contextmanager
def both(bench, folder):
    """Runs the daemon with the identity, and the bare server; yields them by name."""
    root = bench.repository(folder)
    write_model(root, "identity", {"architecture": "identity"})
    with servers.echo(bench.build) as echo, servers.daemon(bench.build, root) as daemon:
        yield {"bare gRPC": echo, "saccaded": daemon}


def overhead(bench):
    """Measures by the gRPC client of C++."""
    rows = []
    with both(bench, "overhead") as candidates:
        for size, shape in SIZES.items():
            for clients in (1, MANY):
                found = bench.against(candidates, "identity", shape, clients)
                rows += [[size, str(clients), name, *measured(found[name], found["bare gRPC"])] for name in found]
                overhead_goals(bench.page, size, clients, found["saccaded"], found["bare gRPC"])
    bench.page.table("The identity, against bare gRPC", ["sent and answered", "clients", *HEAD], rows,
                     "The bare server is gRPC's callback API in a process of its own, which answers with the request's "
                     "own slices and reads nothing in them. What saccaded takes beyond it is counted as its own, the "
                     "identity's computing included.")


def overhead_goals(page, size, clients, ours, bare):
    count = "1 client" if clients == 1 else f"{clients} clients"
    p50 = f"identity, {size}, {count}: p50, against bare gRPC"
    if clients == 1:
        page.goal(p50, ours.p50 / bare.p50, most=1.35)
    else:
        page.goal(f"identity, {size}, {count}: calls/s, against bare gRPC", ours.rate / bare.rate, least=0.75)
        if size in MAX_PROCESSOR:
            page.goal(f"identity, {size}, {count}: CPU for each call, against bare gRPC",
                      ours.processor / bare.processor, most=MAX_PROCESSOR[size])
    if (size, clients) == ("256 B", 1):
        page.goal(p50, ours.p50 / bare.p50, most=0.7)
        page.goal("identity, 256 B, 1 client: p50 beyond bare gRPC's", ours.p50 - bare.p50, most=60, unit=" us")
    if size == "8 MB":
        page.goal(p50, ours.p50 / bare.p50, most=1)


def by_h2load(bench):
    """Measures by h2load."""
    if reason := h2load.missing():
        bench.page.note(f"h2load was not measured: {reason}.")
        return
    rows = []
    with both(bench, "h2load") as candidates:
        for size, loads in H2LOADS.items():
            request = bench.load.write_request(bench.folder / f"{size}.request", "identity", SIZES[size])
            for connections, streams in loads:
                found = bench.turns(candidates, lambda server: h2load.H2load(server, request, connections, streams))
                rows += [[size, f"{connections} x {streams}", name, *cells(found[name], found["bare gRPC"])]
                         for name in found]
                h2load_goals(bench.page, size, connections, streams, found["saccaded"], found["bare gRPC"])
    bench.page.table("The identity, by h2load", ["sent and answered", "connections x streams", "", "mean", "calls/s",
                     "CPU a call", "mean, against", "calls/s, against", "CPU, against"], rows,
                     "h2load, of nghttp2, sends the same message with less work for each call than a gRPC client, on one "
                     "thread. It reports the mean latency and no percentiles.")


def cells(candidate, base):
    return [whole(candidate.mean), whole(candidate.rate), tenths(candidate.processor), times(candidate.mean / base.mean),
            times(candidate.rate / base.rate), times(candidate.processor / base.processor)]


def h2load_goals(page, size, connections, streams, ours, bare):
    what = f"identity, {size}, h2load {connections} x {streams}"
    if (size, connections, streams) == ("256 B", 8, 4):
        page.goal(f"{what}: calls/s, against bare gRPC", ours.rate / bare.rate, least=2.5)
    if connections * streams > 1:
        page.goal(f"{what}: CPU for each call, against bare gRPC", ours.processor / bare.processor,
                  most=MAX_PROCESSOR[size])
