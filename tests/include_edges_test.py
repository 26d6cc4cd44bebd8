"""Checks the #include lines of every source against the allowed dependencies (docs/architecture.md).

An include is named from the repository's root or belongs to one of the groups below. Anything else fails, so that a new
dependency is a visible decision: a line in this table.
"""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = {".h", ".cc", ".cu", ".cuh", ".inc"}

# Includes from outside the repository, and protoc's output, by the include's name.
GROUPS = {
    "std": r"[a-z_0-9]+|"
    r"(assert|cpuid|execinfo|fcntl|fenv|glob|immintrin|arm_neon|dlfcn|langinfo|limits|malloc|math|poll|pthread|setjmp|signal|stdint|stdio|"
    r"stdlib|string|time|unistd|ucontext|spawn|netdb|sched|omp)\.h|(sys|netinet|arpa|linux)/\w+\.h",
    "torch": r"(ATen|c10|caffe2|torch)/.*",
    "cuda": r"(cuda\w*|cooperative_groups|mma)(\.h|/.*)|(cub|cutlass)/.*",
    "absl": r"absl/.*",
    "grpc": r"(grpc|grpcpp|grpc\+\+)/(?!.*\.pb\.h).*|.*\.grpc\.pb\.h",
    "protobuf": r"google/(protobuf|rpc)/.*|(?!.*\.grpc\.pb\.h).*\.pb\.h",
    "opencv": r"opencv2/.*",
    "freetype": r"ft2build\.h",
    "ffmpeg": r"lib(avcodec|avformat|avutil|swscale)/.*",
    "prometheus": r"prometheus/.*",
    "boost": r"boost/.*",
    "zlib": r"zlib\.h",
    "zstd": r"zstd\.h",
    "curl": r"curl/.*",
    "openssl": r"openssl/.*",
    "nghttp2": r"nghttp2/.*",
    "codecs": r"(jpeglib|jerror|png|webp/decode)\.h",
    "tiff": r"tiffio\.h",
    "spdlog": r"(spdlog|fmt)/.*",
    "json": r"nlohmann/.*",
    "cli": r"CLI/.*",
    "gtest": r"(gtest|gmock)/.*",
    "benchmark": r"benchmark/.*",
    "openvino": r"openvino/.*",
    "sanitizer": r"sanitizer/.*",
}

# Folder -> what its files may include: paths in the repository, or groups. The longest matching folder counts.
ROOMS = {
    "kernels": "kernels std torch cuda",
    "kernels/bench/bench_run.cc": "kernels std torch benchmark",
    # Tiles do not use tensors; their benchmark does.
    "kernels/tile": "kernels/tile kernels/common std",
    "kernels/tile/tile_bench.cc": "kernels/tile kernels/common kernels/bench std torch",
    # The emulator informs AddressSanitizer about its fibres' stacks.
    "kernels/emulator": "kernels std sanitizer",
    "models": "models kernels std torch",
    # The library that runs graphs and the program that checks them know nothing of LibTorch.
    "models/graphs/openvino": "models/api/data_type.h models/graphs std openvino gtest",
    "proto": "",
    "server": "server std absl",
    "server/core": "server/core models/tasks/result.h models/tasks/tiles.h models/api/attention_probe.h models/api/data_type.h "
    "models/api/description.h std absl",
    "server/core/sha256.cc": "server/core std absl openssl",
    "server/core/sha256.h": "server/core std absl openssl",
    "server/batching": "server/core server/batching std absl",
    "server/simulation": "server/core server/batching server/admission server/simulation std absl",
    # What the catalog's thread decides, without its files.
    "server/simulation/faults": "server/core server/batching server/admission server/catalog/load_queue.h "
    "server/catalog/load_plan.h server/simulation std absl",
    # The front's clients and services on virtual time.
    "server/simulation/front": "server/core server/admission server/net server/http server/grpc server/simulation "
    "std absl nghttp2",
    "server/batching/bench/main.cc": "server/batching std absl cli",
    # Simulated replicas report their load as the daemon does.
    "server/simulation/fleet": "server/core server/batching server/admission server/metrics/load_meter.h server/simulation std absl",
    "server/simulation/bench/main.cc": "server/simulation std absl cli",
    "server/admission": "server/core server/admission std absl",
    "server/decode": "server/core server/pictures server/decode models/api/placement.h std absl opencv ffmpeg tiff zlib sanitizer codecs",
    "server/pictures": "server/core server/pictures std absl codecs tiff opencv zlib",
    "server/encode": "server/core server/pictures server/encode models/api/placement.h models/tasks/mask.h models/tasks/result.h std absl opencv",
    "server/logging": "server/core server/logging std absl spdlog json",
    "server/repository": "server/core server/batching/batcher_options.h server/repository models std absl protobuf openssl",
    "server/metrics": "server/core server/metrics models/weights/format/file_contents.h std absl prometheus",
    # The access log writes log lines.
    "server/tracing": "server/core server/logging server/tracing models/api/text.h std absl curl protobuf",
    "server/cache": "server/core server/cache std absl openssl",
    "server/drift": "server/core server/drift models/api/placement.h models/tasks/result.h std absl json",
    "server/shadow": "server/core server/metrics server/shadow models/tasks/classification.h models/tasks/overlap.h models/tasks/result.h std absl json",
    "server/attestation": "server/core server/attestation std absl openssl json",
    "server/capture": "server/core server/capture std absl openssl zlib zstd json curl",
    "server/security": "server/core server/logging server/security std absl openssl",
    # The front: bytes and connections, then HTTP, then gRPC. None of them knows what is served.
    "server/net": "server/core server/logging server/net std absl openssl",
    "server/http": "server/core server/net server/http std absl boost zlib json nghttp2",
    "server/grpc": "server/core server/net server/http server/grpc std absl protobuf zlib",
    # gRPC's own server on the same services, to compare answers with, and its client.
    "server/grpc/grpc_client_test.cc": "server std absl protobuf grpc",
    "server/grpc/testing": "server/core server/net server/http server/grpc std absl protobuf grpc zlib",
    "server/page": "server/core server/net server/http server/page std absl",
    "server/shared_memory": "server/core server/shared_memory models/api/text.h kernels/common/cuda_ipc.h std absl",
    "server/shared_memory/cuda_memory_test.cc": "server/core server/shared_memory kernels/common/testing/fake_cuda_ipc.h std absl",
    # The life of a call. It knows models by its own interface, ReadyModel.
    "server/engine": "server/core server/admission server/batching server/pictures server/decode server/logging server/metrics "
    "server/repository server/tracing server/drift server/shadow server/engine models kernels/common/sticky_errors.h std absl torch",
    # The life of a model.
    "server/catalog": "server/core server/batching server/cache server/logging server/metrics server/repository "
    "server/drift server/shadow server/engine server/ensembles server/catalog models std absl",
    # Passes are timed on LibTorch's threads.
    "server/catalog/thread_trial_test.cc": "server/core server/catalog std absl torch",
    "server/catalog/instance_trial_test.cc": "server/core server/catalog server/repository std absl torch",
    # Finds and computes the models of steps through functions.
    "server/ensembles": "server/core server/repository server/tracing server/engine server/ensembles std absl",
    # Code that needs LibTorch is behind the pipeline's headers.
    # A program that reads a repository, decodes pictures and runs networks, without a server.
    "server/quantize": "server models std absl cli",
    "server/inference": "server models std absl",
    # What the protocols share knows none of them, and only REST knows others.
    "server/protocols": "server -server/protocols/vision -server/protocols/inference -server/protocols/rest "
    "models std absl protobuf json",
    "server/protocols/grpc_runtime_test.cc": "server std absl protobuf grpc",
    "server/protocols/vision": "server -server/protocols/inference -server/protocols/rest models std absl protobuf json",
    "server/protocols/inference": "server -server/protocols/vision -server/protocols/rest models std absl protobuf json",
    "server/protocols/rest": "server models std absl protobuf json",
    "server/lifecycle": "server kernels/common/cuda_ipc.h kernels/common/cuda_plugin.h std absl protobuf cli",
    "server/lifecycle/attester_setup.cc": "server models/device/libtorch_version.h std absl",
    "server/lifecycle/check_instruction_set.cc": "server models/device/instruction_set.h kernels/common/cpu_isa.h std absl",
    "server/lifecycle/gpu_memory.cc": "server/lifecycle kernels/common/cuda_plugin.h models/device/gpu_memory.h std",
    "server/lifecycle/state_folder.cc": "server/lifecycle models/device/instruction_set.h std absl",
    "server/lifecycle/flag_errors.cc": "server models/api/text.h std absl cli",
    "client/cpp": "client/cpp std absl grpc protobuf openssl",
    "client/load": "client/cpp client/load std absl grpc protobuf",
    # Only the command draws on pictures and counts parameters; the library below it does neither.
    "client/cli/drawing": "client/cpp client/cli/drawing server/pictures std absl opencv freetype",
    "client/cli/output": "client/cpp client/cli/drawing client/cli/output std absl json",
    "client/cli/input": "client/cpp client/cli/output client/cli/input client/cli/testing std absl",
    "client/cli/testing": "client/cpp client/cli std absl",
    "client/cli/commands": "client/cpp client/load client/cli std absl json cli",
    # Runs the scheduler in simulation; the daemon is not part of the command.
    "client/cli/tune": "client/cpp client/cli/output client/cli/tune server/batching/nanos.h server/simulation std absl json",
    "client/cli/commands/tune.cc": "client/cli server/batching/nanos.h server/simulation std absl json",
    "client/cli/commands/init.cc": "client/cli models std absl",
    "client/cli/commands/init_graph.cc": "client/cli models std absl",
    "client/cli/commands/init_test.cc": "client/cli models std absl",
    "client/cli/commands/usage_error.cc": "client/cli models/api/text.h server/core/flag_value.h std absl cli",
    "client/cli/commands/params.cc": "client/cli models std absl json",
    "client/bench": "client/cpp client/load client/bench client/cli/output std absl grpc protobuf json cli",
    "tests/fuzz": "tests/fuzz server models std absl protobuf",
    "tests/e2e": "std",
}

# Groups that these folders must not reach, not even through other includes.
UNREACHABLE = {
    "server/core": "torch grpc protobuf opencv prometheus boost",
    "server/batching": "torch grpc protobuf opencv prometheus boost",
    "server/simulation": "torch grpc protobuf opencv prometheus boost",
    "server/admission": "torch grpc protobuf opencv prometheus boost",
    "server/pictures": "torch grpc protobuf prometheus boost",
    "server/decode": "torch grpc protobuf prometheus boost",
    "server/encode": "torch grpc protobuf prometheus boost",
    "server/tracing": "torch grpc opencv prometheus boost",
    "server/cache": "torch grpc protobuf opencv prometheus boost",
    "server/drift": "torch grpc protobuf opencv prometheus boost",
    "server/shadow": "torch grpc protobuf opencv prometheus boost",
    "server/attestation": "torch grpc protobuf opencv prometheus boost",
    "server/capture": "torch grpc protobuf opencv prometheus boost",
    "server/security": "torch grpc protobuf opencv prometheus boost",
    "server/net": "torch grpc protobuf opencv prometheus boost",
    "server/http": "torch grpc protobuf opencv prometheus",
    "server/grpc": "torch grpc opencv prometheus boost",
    "server/protocols": "grpc",
    "server/lifecycle": "grpc",
    "server/page": "torch grpc protobuf opencv prometheus boost",
    "server/metrics": "torch grpc protobuf opencv boost",
    "client": "torch opencv prometheus boost",
    "client/cli/drawing": "torch grpc protobuf prometheus boost",
}

# Tests, benchmarks and their helpers may use these as well.
TESTING = "gtest benchmark"

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(<([^>]+)>|"([^"]+)")', re.MULTILINE)


def includes(text):
    return [(bool(quoted), angled or quoted) for _, angled, quoted in INCLUDE.findall(text)]


def in_room(path, room):
    return path == room or path.startswith(room + "/")


def room_of(path, rooms):
    return max((room for room in rooms if in_room(path, room)), key=len, default=None)


def group_of(name):
    return next((group for group, pattern in GROUPS.items() if re.fullmatch(pattern, name)), None)


def is_testing(path):
    return bool(re.search(r"(_(test|bench|benchmark)\.(cc|cu|h)|/testing/.*)$", path))


def violation(path, quoted, name, files):
    """Explains why the file at `path` may not include `name`; None if it may."""
    room = room_of(path, ROOMS)
    if room is None:
        return f"{path}: lies in no room of the table"
    allowed = ROOMS[room].split() + (TESTING.split() if is_testing(path) else [])
    if name in files:
        # The longest entry decides; one with a minus forbids, but not to tests.
        entry = max((entry for entry in allowed if in_room(name, entry.lstrip("-"))), key=len, default=None)
        if entry is None or (entry.startswith("-") and not is_testing(path)):
            return f"{path}: {room} may not include {name}"
        return None
    group = group_of(name)
    if group is None:
        hint = "name it from the repository's root" if quoted else "give it a group in the table"
        return f"{path}: {name} is neither a file of the repository nor of a known group ({hint})"
    if group not in allowed:
        return f"{path}: {room} may not include {name} ({group})"
    return None


def direct_violations(files):
    found = (violation(path, quoted, name, files) for path, text in files.items() for quoted, name in includes(text))
    return [line for line in found if line]


def reach_violations(files):
    found = []
    for start in files:
        room = room_of(start, UNREACHABLE)
        if room is None or is_testing(start) or start in ROOMS:
            continue
        forbidden = UNREACHABLE[room].split()
        seen, todo = set(), [(start, start)]
        while todo:
            path, way = todo.pop()
            for _, name in includes(files[path]):
                if name in files and name not in seen:
                    seen.add(name)
                    todo.append((name, f"{way} -> {name}"))
                elif name not in files and group_of(name) in forbidden:
                    found.append(f"{way} -> {name}: {room} must not reach {group_of(name)}")
    return found


def repository_files():
    return {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for top in ("kernels", "models", "proto", "server", "client", "tests")
        for path in sorted((ROOT / top).rglob("*"))
        if path.suffix in SOURCES
    }


def test_every_include_is_allowed():
    files = repository_files()
    assert len(files) > 50, "the sources were not found"
    problems = direct_violations(files)
    assert not problems, "\n" + "\n".join(problems)


def test_what_is_served_includes_no_helpers_of_tests():
    """They lie in folders named testing; an operator's, in x_testing.h."""
    free = ("tests/", "server/simulation/", "models/tools/")
    problems = [f"{path} includes {name}" for path, text in repository_files().items() for _, name in includes(text)
                if re.search(r"/testing/|_testing\.h$", name) and not is_testing(path)
                and not path.endswith("_testing.h") and not path.startswith(free)]
    assert not problems, "\n" + "\n".join(problems)


def test_nothing_forbidden_is_reached_through_others():
    problems = reach_violations(repository_files())
    assert not problems, "\n" + "\n".join(problems)


def test_the_page_draws_or_names_every_room_of_the_server():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {name.split("/")[1] for name in repository_files() if re.match(r"server/\w+/", name)}
    drawn = set(re.findall(r"\w+", page.partition("flowchart")[2].partition("```")[0]))
    not_drawn = set(re.findall(r"`(\w+)`", re.search(r"rooms are not drawn: ([^.]*)\.", page)[1]))
    assert rooms - drawn == not_drawn
    assert not [room for room in rooms if f"**{room}**" not in page], "a room that the page does not explain"


@pytest.mark.parametrize(
    "path, line, complaint",
    [
        ("kernels/sao/sao_cpu.cc", "#include <absl/status/status.h>", "kernels may not include absl/status/status.h"),
        ("kernels/sao/sao_cpu.cc", '#include "models/layers.h"', "kernels may not include models/layers.h"),
        ("models/layers.cc", '#include "server/core/request.h"', "models may not include server/core/request.h"),
        ("server/batching/batcher.cc", '#  include "grpcpp/grpcpp.h"', "server/batching may not include grpcpp"),
        ("server/batching/batcher.cc", "#include <ATen/ATen.h>", "server/batching may not include ATen/ATen.h"),
        ("server/http/x.cc", '#include "prometheus/registry.h"', "server/http may not include prometheus"),
        ("server/protocols/x.cc", "#include <torch/torch.h>", "server/protocols may not include torch/torch.h"),
        ("server/protocols/vision/x.cc", '#include "server/protocols/rest/x.h"', "vision may not include server/protocols/rest/x.h"),
        ("server/protocols/x.cc", '#include "server/protocols/rest/x.h"', "server/protocols may not include server/protocols/rest/x.h"),
        ("client/cpp/client.cc", '#include "server/core/request.h"', "client/cpp may not include server/core/request.h"),
        ("client/cpp/client.cc", '#include "models/layers.h"', "client/cpp may not include models/layers.h"),
        ("client/cpp/client.cc", '#include "types.h"', "name it from the repository's root"),
        ("server/core/x.cc", "#include <folly/FBString.h>", "give it a group in the table"),
        ("server/core/x.cc", "#include <gtest/gtest.h>", "server/core may not include gtest"),
        ("elsewhere/x.cc", "#include <vector>", "lies in no room"),
    ],
)
def test_a_planted_include_is_found(path, line, complaint):
    files = {"models/layers.h": "", "server/core/request.h": "", "server/protocols/rest/x.h": "", "client/cpp/types.h": "",
             path: f"// why\n{line}\n"}
    problems = direct_violations(files)
    assert len(problems) == 1 and complaint in problems[0], problems


def test_a_planted_way_round_is_found():
    files = {
        "server/batching/batcher.cc": '#include "server/batching/batcher.h"\n',
        "server/batching/batcher.h": '#include "server/core/request.h"\n',
        "server/core/request.h": '#include "models/tasks/result.h"\n',
        "models/tasks/result.h": "#include <ATen/core/Tensor.h>\n",
    }
    assert direct_violations(files) == []
    problems = reach_violations(files)
    assert problems and "server/batching must not reach torch" in problems[0]


def test_what_is_allowed_passes():
    files = {
        "kernels/sao/sao.h": "#include <cuda_runtime.h>\n#include <ATen/core/Tensor.h>\n#include <vector>\n",
        "models/layers.h": '#include "kernels/sao/sao.h"\n',
        "server/core/request.h": '#include <sys/stat.h>\n#include "absl/time/time.h"\n',
        "server/core/request_test.cc": '#include <gtest/gtest.h>\n#include "server/core/request.h"\n',
        "server/protocols/vision.cc": '#include "saccade/v1/vision.pb.h"\n',
        "client/cpp/vision.cc": '#include "saccade/v1/vision.grpc.pb.h"\n#include "saccade/v1/vision.pb.h"\n',
        "client/cli/commands/params.cc": '#include "models/layers.h"\n',
    }
    assert direct_violations(files) == []
