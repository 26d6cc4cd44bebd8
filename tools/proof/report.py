"""The report as one HTML file that needs nothing else."""

import html

from tools.proof import noise, plots, scenarios

STYLE = """body { font: 15px/1.45 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 } th, td { border: 1px solid #bbb; padding: .25em .6em; text-align: left }
.invalid, .fault { color: #b00020; font-weight: bold } .valid { color: #1d6b1d } code, pre { background: #f2f2f2 }
pre { padding: .6em; overflow-x: auto }"""
NOT_VERIFIED = ("This is not a result verified by MLCommons. It was measured with MLPerf's LoadGen, but with a network, pictures and "
                "settings of this project, and nobody else reviewed it. MLPerf is a trademark of the MLCommons Association.")


class Raw(str):
    """A piece of HTML, which table() does not escape."""


def cell(value):
    return value if isinstance(value, Raw) else html.escape(str(value))


def table(head, rows):
    lines = ["<tr>" + "".join(f"<th>{cell(one)}</th>" for one in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{cell(one)}</td>" for one in row) + "</tr>" for row in rows]
    return "<table>" + "\n".join(lines) + "</table>"


def word(run):
    return Raw(f'<span class="{run.word.lower()}">{run.word}</span>')


def figure(run):
    value, unit = run.figure
    return f"{value:.2f} {unit}"


def busy(runs):
    """Whether the machine was quiet, in a sentence."""
    loud = [run for run in runs if not run.noise.quiet]
    apart = noise.pace_apart([run.noise for run in runs])
    if not loud and apart > noise.STEADY:
        return (f"The machine was not quiet: other processes took at most {noise.QUIET_SHARE:.0%} of its processors, but its own speed "
                f"changed by {apart:.0%} between runs, measured by a fixed piece of work before and after each. A virtual machine's "
                f"neighbours can do that.")
    if not loud:
        return (f"The machine was quiet: other processes took at most {noise.QUIET_SHARE:.0%} of its processors during each run, and its "
                f"speed changed by {apart:.0%}.")
    most = max(run.noise.others for run in loud)
    return (f"The machine was not quiet: during {len(loud)} of {len(runs)} runs other processes took more than "
            f"{noise.QUIET_SHARE:.0%} of its processors, and up to {most:.0%}. The figures are not those of an idle machine.")


def percentile(run, name):
    return f"{run.summary.latencies[name] / 1e6:.2f}" if name in run.summary.latencies else ""


def runs_table(runs):
    fastest = max((run.noise.pace for run in runs), default=1)
    return table(("scenario", "system", "sent per second", "LoadGen's figure", "LoadGen says", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms",
                  "other processes", "machine's speed", "why"),
                 [(run.scenario, run.system, f"{run.rate:.0f}" if run.scenario == "Server" else "", figure(run), word(run),
                   *(percentile(run, name) for name in ("50.00", "90.00", "99.00", "99.90")), f"{run.noise.others:.0%}",
                   f"{run.noise.pace / fastest:.0%}", "; ".join(run.reasons)) for run in runs])


def results(campaign, length):
    parts = []
    for scenario in scenarios.SCENARIOS:
        found = {name: runs for (of, name), runs in campaign.results.items() if of == scenario}
        if not found:
            continue
        rows = []
        for name, runs in found.items():
            spread = campaign.spread(scenario, name)
            rows.append((name, Raw("<br>".join(f"{html.escape(figure(run))} {word(run)}" for run in runs)),
                         "" if spread is None else f"{spread:.0%}", "; ".join(sorted({why for run in runs for why in run.reasons}))))
        parts += [f"<h3>{scenario}</h3><p>{html.escape(scenarios.told(scenario, length))}.</p>",
                  table(("system", "figure of each round", "rounds apart", "why invalid"), rows),
                  plots.percentiles({name: runs[-1].summary.latencies for name, runs in found.items()})]
    return "\n".join(parts)


def accuracy(campaign):
    complete = [name for name, found in campaign.answers.items() if len(found) == len(campaign.pictures.files)]
    if not complete:
        return ""
    first = complete[-1]
    return "<h2>Accuracy</h2><p>By LoadGen's accuracy mode: every picture once, compared with the labels and with " + html.escape(
        first) + ".</p>" + table(
        ("system", "top-1", f"same class as {first}", f"largest difference of a logit from {first}'s"),
        [(name, f"{campaign.accuracy(name):.3f}", f"{campaign.same(name, first)} of {len(campaign.pictures.files)}",
          f"{campaign.apart(name, first):.2%} of the largest") for name in complete])


def page(title, about, command, runs, sections, faults, remarks=()):
    """`about` are (name, value) of what was run; `sections` are pieces of HTML."""
    load = [f"<p>Run {number}, {html.escape(run.system)}, {run.scenario}:</p>" + plots.over_time(
        {"whole machine": [100 * share for share in run.noise.samples]}, 100, " %")
        for number, run in enumerate(runs) if len(run.noise.samples) > 1]
    return "\n".join([
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>',
        f"<style>{STYLE}</style></head><body><h1>{html.escape(title)}</h1>", f"<p><strong>{NOT_VERIFIED}</strong></p>",
        f"<p>{html.escape(busy(runs))}</p>" if runs else "",
        *(f"<p>{html.escape(remark)}</p>" for remark in remarks),
        *(f'<p class="fault">{html.escape(fault)}</p>' for fault in faults),
        "<h2>What was run</h2>", table(("what", "value"), about),
        *sections,
        "<h2>Every run</h2>", runs_table(runs),
        "<h2>Load of the machine</h2>", "<details><summary>Each run, second by second</summary>", *load, "</details>",
        "<h2>How to repeat it</h2>", f"<pre>{html.escape(command)}</pre>", "</body></html>", ""])
