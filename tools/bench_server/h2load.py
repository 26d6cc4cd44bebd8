"""Loads made by h2load, which does little work for a call and so leaves the processor to the server. It sends HTTP/2
requests and knows nothing of gRPC, so the status of a gRPC call is checked once by nghttp. Both are Debian's
nghttp2-client."""

import dataclasses
import re
import shutil
import subprocess

from tools.bench_server.load import LoadFailed, Sums

PATH = "/inference.GRPCInferenceService/ModelInfer"
HEADERS = ("-H", "content-type: application/grpc", "-H", "te: trailers")
SECONDS = {"s": 1, "ms": 1e-3, "us": 1e-6}
NUMBER = r"([0-9.]+)"


@dataclasses.dataclass
class Summary(Sums):
    """What h2load reports of one candidate over all its turns. It reports no percentiles."""

    calls: int = 0
    seconds: float = 0
    latencies: float = 0  # the sum of all, in seconds
    received: int = 0  # bytes in DATA frames
    processor_seconds: float = 0

    @property
    def rate(self):
        return self.calls / self.seconds

    @property
    def mean(self):
        """The mean latency in microseconds."""
        return 1e6 * self.latencies / self.calls

    @property
    def processor(self):
        """The server's processor time for each call, in microseconds."""
        return 1e6 * self.processor_seconds / self.calls


def missing():
    """The reason why there is no h2load, or None."""
    if not (shutil.which("h2load") and shutil.which("nghttp")):
        return "h2load and nghttp are not installed; ./dev setup tests installs them"
    return None


def parse(report):
    """Returns the Summary of a report of h2load. Raises LoadFailed if a request failed."""
    def find(pattern):
        found = re.search(pattern, report, re.MULTILINE)
        if not found:
            raise LoadFailed(f"h2load reported nothing like {pattern!r}:\n{report}")
        return found

    outcome = find(r"^requests: .*$")[0]
    succeeded, *wrong = map(int, find(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout").groups())
    # h2load may count responses that came after it stopped counting requests.
    good = int(find(r"^status codes: (\d+) 2xx")[1])
    if any(wrong) or not succeeded or good < succeeded:
        raise LoadFailed(f"h2load: {outcome}, {good} of them with a status of 200 to 299")
    rate = float(find(rf"^finished in .*, {NUMBER} req/s")[1])
    _, _, mean, unit = find(rf"^time for request: +{NUMBER}\w+ +{NUMBER}\w+ +{NUMBER}(\w+)").groups()
    received = int(find(r"\((\d+)\) data$")[1])
    return Summary(succeeded, succeeded / rate, succeeded * float(mean) * SECONDS[unit], received)


def check_answer(url, request):
    """Makes one call with nghttp. Returns the size of its answer; raises LoadFailed if the gRPC status is not OK."""
    command = ["nghttp", "-nv", "-t", "10", "-d", request, *HEADERS, f"http://{url}{PATH}"]
    told = subprocess.run(command, capture_output=True, text=True).stdout
    status = re.search(r"recv \(stream_id=\d+\) grpc-status: (\d+)", told)
    if not status or status[1] != "0":
        raise LoadFailed(f"{url}: expected grpc-status 0, got {status[1] if status else 'none'}:\n{told}")
    return sum(map(int, re.findall(r"recv DATA frame <length=(\d+)", told)))


class H2load:
    """A load of the call in the file `request`, a framed gRPC message, on a number of connections with a number of
    streams each."""

    def __init__(self, server, request, connections, streams):
        self.url, self.size = server.url, check_answer(server.url, request)
        self.command = ["h2load", "-t", "1", "-c", str(connections), "-m", str(streams), "-d", request, *HEADERS]

    def __call__(self, seconds):
        command = [*self.command, "-D", f"{1000 * seconds:.0f}ms", f"http://{self.url}{PATH}"]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            raise LoadFailed(f"h2load: {ran.stderr or ran.stdout}")
        found = parse(ran.stdout)
        # A call that fails has no message in its answer.
        if found.received < found.calls * self.size:
            raise LoadFailed(f"{self.url}: {found.calls} answers had {found.received} bytes, expected {self.size} each")
        return found
