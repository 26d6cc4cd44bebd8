"""The outcome of a replay, as text and as JSON."""

from __future__ import annotations

import math
from typing import Any

from saccade.replay.job import Job, Pair, Result

_LATE_SECONDS = 1.0


def _pair(pair: Pair) -> dict[str, Any]:
    facts = pair.captured.facts
    return {
        "time": facts.get("time", ""), "model": pair.captured.model, "target": pair.captured.target,
        "id": pair.captured.id, "captured_version": pair.captured.version, "version": pair.now.version,
        "kind": pair.difference.kind,
        "difference": pair.difference.value if math.isfinite(pair.difference.value) else None,
        "expected": pair.expected, "what": pair.difference.what,
    }


def document(result: Result, job: Job, address: str) -> dict[str, Any]:
    total = result.total
    return {
        "capture": str(job.folder), "daemon": address,
        "speed": job.speed if math.isfinite(job.speed) else "max",
        "expect": "exact" if job.exact else job.expect,
        "seconds": round(result.seconds, 3), "latest_seconds": round(result.late_seconds, 3),
        "compared": total.compared, "equal": total.equal, "close": total.close, "different": total.different,
        "models": {
            name: {"compared": one.compared, "equal": one.equal, "close": one.close, "different": one.different,
                   "computes_alike": result.computes_alike.get(name)}
            for name, one in sorted(result.models.items())
        },
        "skipped": result.skipped,
        "damages": [str(one) for one in result.damages],
        "worst": [_pair(one) for one in result.worst],
    }


def text(result: Result) -> str:
    total = result.total
    lines = [
        f"{total.compared:,} calls in {result.seconds:.1f} s: {total.equal:,} answers are bit for bit the same, "
        f"{total.close:,} within the tolerance, {total.different:,} differ"
    ]
    for name, one in sorted(result.models.items()):
        alike = {True: "computed alike", False: "not computed alike", None: "errors only"}[result.computes_alike.get(name)]
        lines.append(
            f"  {name or '(no model)'}: {one.equal:,} same, {one.close:,} close, {one.different:,} differ ({alike})"
        )
    lines += [f"{count:,} calls were left out: they {why}" for why, count in sorted(result.skipped.items())]
    if result.late_seconds > _LATE_SECONDS:
        lines.append(f"some calls were sent up to {result.late_seconds:.1f} s late: the daemon or this machine is too slow")
    for pair in result.worst[:5]:
        named = f" id {pair.captured.id}" if pair.captured.id else ""
        lines.append(f"  {pair.captured.model}{named} at {pair.captured.facts.get('time', '')}: {pair.difference.what}")
    return "\n".join(lines) + "\n"
