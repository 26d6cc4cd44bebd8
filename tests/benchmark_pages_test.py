"""Checks the pages of figures: each says when and by which command it was made, and what docs/benchmarks/README.md says about
them is computed again from their tables."""

import pathlib
import re
import statistics
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tools.tune_page import missed_wishes  # noqa: E402

FOLDER = ROOT / "docs" / "benchmarks"
PAGES = sorted(set(FOLDER.glob("*.md")) - {FOLDER / "README.md"})
README = " ".join((FOLDER / "README.md").read_text().split())


def missing_in(head):
    """What the head of a page lacks for its figures to be made again."""
    lacks = [] if re.search(r"`?\./dev [a-z]+", head) else ["the command that made it"]
    # What is simulated gives the same figures at any time.
    if "same seed" not in head and not re.search(r"20\d\d-\d\d-\d\d", head):
        lacks.append("the date")
    return lacks


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_have_a_command_and_a_date(page):
    assert missing_in("\n".join(page.read_text().splitlines()[:16])) == []


def test_a_page_without_a_record_is_found():
    assert missing_in("# Kernels\n\n- CPU: AMD EPYC\n") == ["the command that made it", "the date"]
    assert missing_in("    ./dev bench kernels\n") == ["the date"]


def rows(page):
    lines = (FOLDER / page).read_text().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]


def times_ours(cell):
    found = re.search(r"([\d.]+)x$", cell)
    return float(found[1]) if found else None


def shares_of_float32(table, column):
    return [float(re.search(r"([\d.]+) of fp32", row[column])[1]) for row in table]


def say(*parts):
    """The sentence is in the README, as it follows from the table."""
    sentence = " ".join(" ".join(parts).split())
    assert sentence in README, f"docs/benchmarks/README.md should say: {sentence}"


def test_what_is_said_about_networks_follows_from_the_table():
    table = [row for row in rows("models-cpu.md") if len(row) > 7 and times_ours(row[4])]
    plain, coarse = [[times_ours(row[column]) for row in table] for column in (4, 7)]
    say(f"OpenVINO takes {min(plain):.2f} to {max(plain):.2f} of our time in float32, in the middle of the {len(plain)} rows",
        f"{statistics.median(plain):.2f}, and {min(coarse):.2f} to {max(coarse):.2f} in bfloat16, in the middle",
        f"{statistics.median(coarse):.2f}.")
    for times, name in ((plain, "float32"), (coarse, "bfloat16")):
        ahead = sum(one < 0.98 for one in times)
        say(f"It is ahead by more than 2 % in {ahead} of them in {name}")
    shares = shares_of_float32(table, 6)
    say(f"bfloat16 takes {min(shares):.2f} to {max(shares):.2f} of our float32 time")


def test_what_is_said_about_an_intel_machine_follows_from_the_table():
    table = [row for row in rows("models-cpu-intel.md") if len(row) > 8 and times_ours(row[3])]
    plain, int8 = [[times_ours(row[column]) for row in table] for column in (3, 8)]
    say(f"OpenVINO takes {min(plain):.2f} to {max(plain):.2f} of our time in float32, in the middle",
        f"{statistics.median(plain):.2f}; it is ahead by more than 2 % in {sum(one < 0.98 for one in plain)} of them:")
    say(f"In int8, OpenVINO takes {min(int8):.2f} to {max(int8):.2f} of our time, and it is ahead by more than 2 % in",
        f"{sum(one < 0.98 for one in int8)} of them.")
    coarse = shares_of_float32(table, 5)
    theirs = [float(row[6].split()[0]) / float(row[3].split()[0]) for row in table]
    say(f"it takes {min(coarse):.2f} to {max(coarse):.2f} of our float32 time, and OpenVINO's takes {min(theirs):.2f} to "
        f"{max(theirs):.2f} of its own.")
    maps, floats = ([row for row in table if row[0].startswith(names)]
                    for names in ("expatt_resnet", ("attnnet", "kanet", "sanet")))
    gains, losses = (shares_of_float32(chosen, 7) for chosen in (maps, floats))
    say(f"Ours takes {min(gains):.2f} to {max(gains):.2f} of float32's time for ResNets with explicit maps, and",
        f"{min(losses):.2f} to {max(losses):.2f} for AttnNet, KANet and SANet")


def test_what_is_said_about_graphs_follows_from_the_table():
    tables = [row for row in rows("graphs.md") if row[0] in ("float32", "bfloat16")]
    alone, beside = ([row for row in tables if len(row) == length] for length in (12, 10))
    assert len(alone) == len(beside) == 4
    pass_, unpinned, work = ([float(row[column]) for row in alone] for column in (6, 7, 11))
    say(f"OpenVINO by itself takes {min(pass_):.2f} to {max(pass_):.2f} of the daemon's pass and, in processor time, "
        f"{min(work):.2f} to {max(work):.2f}; without pinned threads, as the daemon runs it, {min(unpinned):.2f} to {max(unpinned):.2f}.")
    pass_, whole, flood = ([float(row[column]) for row in beside] for column in (5, 6, 9))
    say(f"benchmark_app takes {min(pass_):.2f} to {max(pass_):.2f} of a pass, and {min(whole):.2f} to {max(whole):.2f} of a whole request")
    say(f"the daemon answers {min(flood):.2f} to {max(flood):.2f} of benchmark_app's pictures")


def test_what_is_said_about_tiles_follows_from_the_table():
    goals = {row[0]: float(row[2]) for row in rows("tiles.md") if row[3:] in (["yes"], ["**no**"])}
    found = [row for row in rows("tiles.md") if row[0].startswith(("SAHI", "Saccade"))]
    ours = [row[1] for row in found if row[0] == "Saccade"]
    usual = next(row[1] for row in found if row[0] == "SAHI, masks")
    best = [max(float(row[1]) for row in found[half] if row[0].startswith("SAHI")) for half in (slice(0, 6), slice(6, 12))]
    say(f"the daemon found {ours[0]} % of the objects, SAHI with its defaults {usual} % and less without masks")
    say(f"(NMS) SAHI found {best[0]} %, and more that is no object")
    time, masked = ({overlap: goals[f"{what}, overlap {overlap}"] for overlap in (32, 64)}
                    for what in ("of the time of SAHI's fastest", "the same with masks"))
    say(f"The daemon took {time[32]:.2f} of the time of SAHI's fastest form, and "
        f"{masked[32]:.2f} of that with masks.")
    say(f"it found {ours[1]} %, SAHI at most {best[1]} %, in {time[64]:.2f} and {masked[64]:.2f} of the time")


def test_what_is_said_about_kernels_follows_from_the_table():
    took = {row[0]: float(row[1].split()[0]) * {"ms": 1000, "us": 1}[row[1].split()[1]] for row in rows("kernels-cpu.md")
            if re.fullmatch(r"[\d.]+ (ms|us)", row[1])}
    softmax, kv, qkv = (took[name] for name in ("attention/softmax, float32/8x8x56x56/eager", "kao/kv/8x8x56x56/saccade",
                                                "kao/qkv/8x8x56x56/saccade"))
    say(f"at 8x8x56x56 KAO_KV takes 1/{softmax / kv:.0f} of its time and KAO_QKV 1/{round(softmax / qkv, -2):,.0f}",
        f"({softmax / 1000:.0f} ms, {kv / 1000:.2f} ms, {qkv:.0f} us;")
    softmax, sao = took["attention/softmax, float32/1x256x56x56/eager"], took["sao/operator, float32/1x256x56x56/saccade"]
    say(f"At 256x56x56 SAO takes 1/{round(softmax / sao, -1):.0f} ({softmax / 1000:.0f} ms, {sao:.0f} us;")


def test_what_is_said_about_the_daemon_follows_from_the_table():
    goals = {row[0]: (float(row[2].split()[0]), row[3]) for row in rows("server.md") if row[3:] in (["yes"], ["**no**"])}
    calls, network, slowest = (goals[name][0] for name in (
        "identity, 256 B, 32 clients: calls/s, against Triton", "network, 48 kB, 32 clients: calls/s, against Triton",
        "identity, 256 B, half of Triton's load: p99, against Triton"))
    assert 0.2 < slowest < 0.3, "a quarter"
    say(f"against Triton, {calls:.1f} times the small calls a second, {network:.1f} times those of a small network, and a quarter")
    words = {12: "twelve", 13: "thirteen", 11: "eleven", 10: "ten"}
    all_of = [row for row in rows("server.md") if row[3:] in (["yes"], ["**no**"])]
    missed = sum(row[3] == "**no**" for row in all_of)
    say(f"{words[missed]} of the {len(all_of)} goals in server.md were missed")


def test_the_page_of_tune_names_the_configurations_that_missed_their_wish():
    cases = [row for row in rows("tune.md") if re.fullmatch(r"[\d.]+", row[1])]
    assert len(cases) >= 30
    assert f"\n\n{missed_wishes(cases)}\n\n" in (FOLDER / "tune.md").read_text()
    kept, late, unmeasured = (["net", "20.0", "188", "1 x 1", "81.3", measured] for measured in ("184.7", "196.0", "-"))
    assert missed_wishes([kept, late, unmeasured]) == (
        "1 of the 3 chosen configurations missed its own wish: net at 20.0 a second, 196.0 ms instead of 188.")
    assert missed_wishes([kept, unmeasured]) == "Each chosen configuration that was measured kept its wish."


def test_what_is_said_about_inverted_residuals_follows_from_the_table():
    (decision,) = (FOLDER.parent / "decisions").glob("0036-*.md")
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in decision.read_text().splitlines()]
    plain, coarse = [[times_ours(row[column]) for row in table if len(row) > 4 and times_ours(row[column])] for column in (2, 4)]
    assert len(plain) == len(coarse) > 10
    say(f"in which OpenVINO takes {min(plain):.2f} to {max(plain):.2f} of our time in float32 and {min(coarse):.2f} to"
        f" {max(coarse):.2f} in bfloat16.")


def test_what_is_said_about_a_fleet_follows_from_the_tables():
    page = " ".join((FOLDER.parent / "fleet.md").read_text().split())
    figures = {row[0]: row[1] for row in rows("fleet.md") if len(row) > 1}
    assert len(figures) > 60

    def percent(name, digits=0):
        return f"{100 * float(figures[name]):.{digits}f} %"

    minute, whole = "of the bound, in the first minute", "of the bound, in 280 s"
    burst = "attempts for a call, in the ten seconds and in the minute after"
    careless, shipped = (figures[f"{clients}: {burst}"].split(",")[0] for clients in ("careless", "shipped"))
    for sentence in (
        "one replica in fifty computes at a fifth of its speed | "
        + percent("round robin: of the bound, while they are slow", 1),
        *(f"**{percent(f'{kind} version, rolling update: of the bound, in the last minute')} in the end** | the canary: "
          f"{percent(f'{kind} version, canary: {whole}', 1)}, undone {figures[f'{kind} version, canary: undone']}"
          for kind in ("failing", "slow")),
        f"**{percent(f'shipped client: {minute}')} in the first minute** | attempts of 700 ms without a budget: "
        + percent(f"700 ms, no budget: {minute}"),
        "the load triples | {} until all is well, by processor time | by demand: {} |".format(
            *(figures[f"by {what}: 95 % of all calls are in time again after"] for what in ("processor time", "demand"))),
        f"({float(careless):.1f} for a call in the burst instead of {shipped})",
        f"only {percent('same order, no budget: of the bound, in the minute after')} of the bound",
        f"{percent('same order: of the bound, in the minute after', 1)} with a thousand replicas",
        "miss the goal: {} at load 0.8, {} at 0.9 and {} at 1.5".format(
            *(percent(f"load {load}, subsets of 20: of the bound") for load in (0.8, 0.9, 1.5))),
        f"for {figures['no keepalive: recovered after'].removesuffix(' s')} seconds, and {percent(f'no keepalive: {minute}')} of the bound",
    ):
        assert sentence in page, f"docs/fleet.md should say: {sentence}"
