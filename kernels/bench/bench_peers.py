"""Times torch.compile and SDPA, which only Python has, beside eager PyTorch and saccade's operators in one process.

usage: bench_peers.py --build DIR [--device cpu|cuda [--stand-in]] [--filter TEXT] [--threads N] [--seconds S]
                      [--json FILE] [--markdown FILE]

As in the benchmark program, every result is compared with float64 before anything is timed, candidates take turns,
and medians and ratios are printed. If FILE exists, rows are appended to it. On a GPU every candidate is a CUDA graph,
so that launch overhead is not measured. float32 runs without TF32. Beside 16-bit maps saccade has float32 weights, as
in a network. --stand-in rehearses --device cuda on a machine without a GPU.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
import time

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

# Helpers that are run as programs elsewhere, so they find each other in their own folder.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import gpu_stand_in  # noqa: E402
from gpu_check import captured  # noqa: E402

TURN_SECONDS = 0.01
LEAST_ROUNDS = 7
GSA_HEADS = 8
# Bounds of the relative L2 distance from float64: for saccade, and for the other candidates.
BOUNDS = {torch.float32: (1e-6, 2e-5), torch.bfloat16: (1e-2, 5e-2)}


def ea_eager(x, wk, bk, wq, bq, wv, bv, wo, bo):
    flat = x.flatten(2)
    keys = (wk @ flat + bk[:, None]).softmax(-1)
    queries = (wq @ flat + bq[:, None]).softmax(-2)
    context = (wv @ flat + bv[:, None]) @ keys.mT
    return (wo @ (context @ queries) + bo[:, None] + flat).view_as(x)


def ea_folded(x, wk, bk, wq, bq, wv, bv, wo, bo):
    """Values are never made, and the bias of the keys cancels."""
    flat = x.flatten(2)
    context = wo @ (wv @ (flat @ (wk @ flat).softmax(-1).mT) + bv[:, None])
    return (context @ (wq @ flat + bq[:, None]).softmax(-2) + bo[:, None] + flat).view_as(x)


def ea_two_sdpa(x, wk, bk, wq, bq, wv, bv, wo, bo):
    """Two chained attentions: key weights attend to positions, then positions attend to query weights."""
    rows = x.flatten(2).mT
    gathered = sdpa(wk.expand(len(x), -1, -1), rows, rows, scale=1.0)
    values = (gathered @ wv.T + bv) @ wo.T
    out = sdpa(rows, wq.expand(len(x), -1, -1), values, attn_mask=bq.expand(len(x), 1, -1), scale=1.0)
    return (out + bo + rows).mT.reshape(x.shape)


def ea_saccade(ops, x, wk, bk, wq, bq, wv, bv, wo, bo):
    return ops.efficient_attention_module(x, wk, wq, wv, bk, bq, bv, wo, bo)


def averages(x):
    return torch.cat([x.mean(2), x.mean(3)], -1)


def outer_sum(mixed, width):
    return mixed[:, :, None, :width] + mixed[:, :, width:, None]


def kv_eager(x):
    c = averages(x)
    return (c @ (c.mT @ x.flatten(2)).softmax(-2)).view_as(x)


def kv_sdpa(x):
    c = averages(x).mT
    return sdpa(x.flatten(2).mT, c, c, scale=1.0).mT.reshape(x.shape)


def qkv_eager(x):
    c = averages(x)
    return outer_sum(c @ (c.mT @ c).softmax(-2), x.shape[3])


def qkv_sdpa(x):
    c = averages(x).mT
    return outer_sum(sdpa(c, c, c, scale=1.0).mT, x.shape[3])


def attention_eager(x):
    flat = x.flatten(2)
    return (flat @ (flat.mT @ flat).softmax(-2)).view_as(x)


def attention_sdpa(x):
    rows = x.flatten(2).mT
    return sdpa(rows, rows, rows, scale=1.0).mT.reshape(x.shape)


def sao_eager(x, value_weight, w, scale, shift, heads=4):
    flat = x.flatten(2)
    v = (value_weight @ flat).unflatten(1, (heads, -1))
    scores = w.view(heads, 1, -1) @ flat.unflatten(1, (heads, -1))
    sums = v.sum(-1, keepdim=True) * scores + v @ scores.mT
    return (sums.flatten(1, 2) * scale[:, None] + shift[:, None] + flat).view_as(x)


def gaussian_map(height, width, sigma, like):
    y, x = (torch.arange(size, device=like.device, dtype=like.dtype) / size for size in (height, width))
    squares = ((y[:, None] - y) ** 2)[:, None, :, None] + ((x[:, None] - x) ** 2)[None, :, None, :]
    weights = torch.exp(squares / (-2 * sigma**2)).view(height * width, -1) + 1
    return weights / weights.sum(-1, keepdim=True)


def expatt_eager(v, sigma, _):
    return (v.flatten(2) @ gaussian_map(*v.shape[2:], sigma, v).mT).view_as(v)


def expatt_cached(v, _, dense):
    return (v.flatten(2) @ dense.mT).view_as(v)


def column_attention(q, v, embedding):
    index = torch.arange(q.shape[3], device=q.device)
    positions = embedding[index - index[:, None] + len(embedding) // 2]
    scores = torch.einsum("bnkxy,xik->bnyxi", q, positions)
    return torch.einsum("bnyxi,bnviy->bnvxy", scores, v)


def gsa_eager(q, k, v, columns, rows, scale, shift):
    q, k, v = (t.unflatten(1, (GSA_HEADS, -1)) for t in (q, k, v))
    context = torch.einsum("bnkp,bnvp->bnkv", k.flatten(3).softmax(-1), v.flatten(3))
    content = torch.einsum("bnkxy,bnkv->bnvxy", q, context)
    middle = column_attention(q, v, columns).flatten(1, 2) * scale[:, None, None] + shift[:, None, None]
    positional = column_attention(q.mT, middle.unflatten(1, (GSA_HEADS, -1)).mT, rows).mT
    return (content + positional).flatten(1, 2)


def gsa_saccade(ops, q, k, v, *rest):
    return ops.gsa(q, k, v, GSA_HEADS, *rest)


def ea_weights(shape):
    d, dk = shape[1], min(64, shape[1])
    into = [t for _ in range(3) for t in (torch.randn(dk, d) / d**0.5, torch.randn(dk))]
    return into + [torch.randn(d, dk) / dk**0.5, torch.randn(d)]


def sao_weights(shape):
    channels = shape[1]
    return [torch.randn(channels, channels) / channels**0.5, torch.randn(channels),
            torch.randn(channels) / math.prod(shape[2:]), torch.randn(channels)]


def expatt_weights(shape):
    sigma = torch.tensor(0.75)
    return [sigma, gaussian_map(*shape[2:], sigma, sigma)]


def gsa_weights(shape):
    _, channels, height, width = shape
    embeddings = [torch.randn(2 * max(height, width) - 1, channels // GSA_HEADS) / height for _ in range(2)]
    return [torch.randn(shape), torch.randn(shape), *embeddings, torch.randn(channels), torch.randn(channels)]


def no_weights(_):
    return []


TABLE_SIZES = [(8, 8, 14, 14), (8, 8, 28, 28), (8, 8, 56, 56)]
SAO_SIZES = [(1, 64, 14, 14), (1, 128, 28, 28), (1, 256, 56, 56)]
EA_SIZES = [(1, 64, 64, 64), (1, 64, 256, 256), (1, 256, 28, 40), (1, 256, 112, 160), (1, 256, 224, 320), (1, 512, 56, 80),
            (1, 1024, 56, 80), (1, 2048, 28, 40)]
# op/variant: (weights, eager form, other forms, saccade's form, sizes).
CASES = {
    "attention/softmax": (no_weights, attention_eager, {"sdpa": attention_sdpa},
                          lambda ops, x: ops.attention(x, x, x), TABLE_SIZES + SAO_SIZES[:2]),
    "efficient_attention/module": (ea_weights, ea_eager, {"folded": ea_folded, "2xsdpa": ea_two_sdpa}, ea_saccade, EA_SIZES),
    "expatt/gaussian": (expatt_weights, expatt_eager, {"dense, cached": expatt_cached},
                        lambda ops, v, sigma, _: ops.expatt(v, "gaussian", sigma), [(1, 16, 28, 28), (1, 16, 56, 56)]),
    "gsa/operator": (gsa_weights, gsa_eager, {}, gsa_saccade, [(1, 64, 56, 56), (1, 256, 14, 14)]),
    "kao/kv": (no_weights, kv_eager, {"sdpa": kv_sdpa},
               lambda ops, x: ops.kao_kv(x, x, x), TABLE_SIZES + SAO_SIZES[2:]),
    "kao/qkv": (no_weights, qkv_eager, {"sdpa": qkv_sdpa},
                lambda ops, x: ops.kao_qkv(x, x, x), TABLE_SIZES + SAO_SIZES[2:]),
    "sao/module": (sao_weights, sao_eager, {}, lambda ops, *inputs: ops.sao_module(*inputs), SAO_SIZES),
}


def seconds_of(run, times, device):
    start = time.perf_counter()
    for _ in range(times):
        run()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / times


def interleaved(candidates, seconds, device):
    """Returns each candidate's seconds per call, one entry per round."""
    turns = {}
    for name, run in candidates.items():
        once = min(seconds_of(run, 1, device) for _ in range(3))
        turns[name] = max(1, round(TURN_SECONDS / max(once, 1e-7)))
    times = {name: [] for name in candidates}
    start = time.perf_counter()
    while len(times["saccade"]) < LEAST_ROUNDS or time.perf_counter() - start < seconds * len(candidates):
        for name, run in candidates.items():
            times[name].append(seconds_of(run, turns[name], device))
    return times


def check(name, got, expected):
    ours, others = BOUNDS[got.dtype]
    allowed = ours if name == "saccade" else others
    error = ((got.cpu().double() - expected).norm() / expected.norm()).item()
    if not error <= allowed:
        raise AssertionError(f"{name} is off by {error:.2e} relative to float64; expected at most {allowed:.0e}")


def run_case(case, shape, dtype, options):
    weights, eager, forms, ours, _ = CASES[case]
    # Scaled so that the scores of x with itself stay about 1, as with trained weights.
    x = (torch.randn(shape) + 0.2) / shape[1]**0.25
    inputs = [t.to(dtype) for t in (x, *weights(shape))]
    expected = eager(*(t.double() for t in inputs))
    inputs = [t.to(device=options.device) for t in inputs]
    # Maps keep their type.
    served = [t if t.dim() == 4 else t.float() for t in inputs]
    torch.compiler.reset()
    # A rehearsal compiles nothing: there is no GPU to compile for.
    compiled = eager if options.stand_in else torch.compile(eager, dynamic=False)
    runs = {"eager": eager, "compile": compiled, **forms}
    candidates = {name: lambda run=run: run(*inputs) for name, run in runs.items()}
    candidates["saccade"] = lambda: ours(torch.ops.saccade, *served)
    for name, run in candidates.items():
        check(name, run(), expected)
    if options.device == "cuda":
        candidates = {name: captured(run) for name, run in candidates.items()}
    return interleaved(candidates, options.seconds, options.device)


def report(name, times):
    rows = []
    print(f"{name}: {len(times['saccade'])} rounds")
    for candidate, values in times.items():
        ratio = statistics.median(a / b for a, b in zip(values, times["saccade"]))
        milliseconds = statistics.median(values) * 1e3
        print(f"  {candidate:16} {milliseconds:10.4f} ms {ratio:8.2f}x", flush=True)
        rows.append({"name": f"{name}/{candidate}", "run_type": "aggregate", "aggregate_name": "median",
                     "repetitions": len(values), "real_time": milliseconds, "time_unit": "ms",
                     "ratio_to_saccade": ratio})
    return rows


def write_json(rows, context, options):
    if not options.json:
        return
    path = pathlib.Path(options.json)
    whole = json.loads(path.read_text()) if path.exists() else {"context": {}, "benchmarks": []}
    whole["context"]["peers"] = context
    whole["benchmarks"] += rows
    path.write_text(json.dumps(whole, indent=2) + "\n")


def write_markdown(text, options):
    """Appends the text at once, so that an interrupted run keeps its results."""
    if options.markdown:
        with open(options.markdown, "a") as out:
            out.write(text)


TABLE_HEAD = "| benchmark | time | to saccade |\n|---|---:|---:|\n"


def table(rows):
    return "".join(f"| {row['name']} | {row['real_time']:.3g} ms | {row['ratio_to_saccade']:.2f}x |\n" for row in rows)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--stand-in", action="store_true", help="rehearse --device cuda on the CPU")
    parser.add_argument("--filter", default="")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    options = parser.parse_args()
    if options.stand_in and options.device != "cuda":
        parser.error("--stand-in stands for a GPU; expected --device cuda")
    return options


def main():
    options = parse()
    lib = pathlib.Path(options.build) / "lib"
    torch.ops.load_library(lib / "libsaccade_kernels.so")
    dtypes = [torch.float32]
    where = f"{options.device}, {options.threads or torch.get_num_threads()} threads"
    if options.device == "cuda":
        torch.ops.load_library(lib / "libsaccade_cuda.so")
        if options.stand_in:
            gpu_stand_in.install()
        dtypes.append(torch.bfloat16)
        where = torch.cuda.get_device_name()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    context = f"PyTorch {torch.__version__}, {where}, {torch.ops.saccade.cpu_isa()}"
    print(context)
    write_markdown(f"\n## Peers, from Python\n\n{context}.\n\n{TABLE_HEAD}", options)
    rows, wrong = [], 0
    for case, (*_, sizes) in CASES.items():
        for shape in sizes:
            for dtype in dtypes:
                name = f"{case}, {str(dtype).removeprefix('torch.')}/{'x'.join(map(str, shape))}"
                if options.filter not in name:
                    continue
                try:
                    found = report(name, run_case(case, shape, dtype, options))
                except AssertionError as error:
                    print(f"{name}: not timed because a result is wrong: {error}", file=sys.stderr)
                    wrong += 1
                    continue
                rows += found
                write_markdown(table(found), options)
    write_json(rows, context, options)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
