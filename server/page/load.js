// The models' current load, from polling /v1/load once per second. Its counters only grow; the page shows their
// differences over the last ten seconds.

import {ask, isRefused} from "./token.js";

const POLL = 1000, WINDOW = 10, KEPT = 60;
const SVG = "http://www.w3.org/2000/svg";

const milliseconds = (seconds) => {
  if (seconds === null) return "–";
  return seconds < 0.1 ? `${(1000 * seconds).toFixed(1)} ms` : `${(1000 * seconds).toFixed(0)} ms`;
};

// A quantile of the requests' durations, from cumulative histograms; interpolates linearly within a bucket.
export function quantile(earlier, later, share) {
  const counts = later.map(([bound, count], i) => [bound, count - (earlier?.[i]?.[1] ?? 0)]);
  const all = counts.at(-1)?.[1] ?? 0;
  if (all <= 0) return null;
  let below = 0, from = 0;
  for (const [bound, count] of counts) {
    if (count >= share * all) {
      return bound === null ? from : from + (bound - from) * (share * all - below) / (count - below);
    }
    [below, from] = [count, bound ?? from];
  }
  return from;
}

// The figures of one model, from two responses of /v1/load. `earlier` may be undefined.
export function rates(earlier, later, seconds) {
  const grown = (name) => later[name] - (earlier?.[name] ?? 0);
  const spent = (name) => later.seconds[name] - (earlier?.seconds[name] ?? 0);
  const answered = grown("answered");
  return {
    requests: answered / seconds,
    failed: grown("failed") / seconds,
    median: quantile(earlier?.requests_by_seconds, later.requests_by_seconds, 0.5),
    slow: quantile(earlier?.requests_by_seconds, later.requests_by_seconds, 0.99),
    waits: answered > 0 ? spent("queue") / answered : null,
    computes: answered > 0 ? spent("infer") / answered : null,
    batch: grown("passes") > 0 ? grown("pictures") / grown("passes") : null,
    queued: later.queued,
  };
}

function sparkline(values) {
  const svg = document.createElementNS(SVG, "svg"), path = document.createElementNS(SVG, "path");
  const most = Math.max(1, ...values);
  const places = values.map((value, i) => `${(KEPT - values.length + i).toFixed(1)},${(19 - 18 * value / most).toFixed(1)}`);
  svg.setAttribute("viewBox", `0 0 ${KEPT - 1} 20`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", places.length > 1 ? `M${places.join("L")}` : "");
  svg.append(path);
  return svg;
}

const keyOf = (model) => `${model.name} ${model.version}`;
const find = (answer, key) => answer.models.find((model) => keyOf(model) === key);

function row(key, line, history) {
  const made = document.createElement("tr");
  const cells = [key, line.requests.toFixed(1), sparkline(history), milliseconds(line.median), milliseconds(line.slow),
                 milliseconds(line.waits), milliseconds(line.computes), line.batch === null ? "–" : line.batch.toFixed(2),
                 String(line.queued), line.failed.toFixed(1)];
  made.append(...cells.map((cell, i) => {
    const td = document.createElement(i === 0 ? "th" : "td");
    if (i === 0) td.scope = "row";
    td.append(cell);
    return td;
  }));
  return made;
}

function show(answers, table, held) {
  const now = answers.at(-1), before = answers.at(-1 - WINDOW) ?? answers[0];
  const seconds = Math.max(0.001, now.time - before.time);
  table.replaceChildren(...now.models.map((model) => {
    const key = keyOf(model);
    const history = answers.slice(1).map((answer, i) => {
      const [old, young] = [find(answers[i], key), find(answer, key)];
      return young ? Math.max(0, young.answered - (old?.answered ?? 0)) / (answer.time - answers[i].time) : 0;
    });
    return row(key, rates(find(before, key), model, seconds), history);
  }));
  const {requests, bytes, decoded_bytes: decoded} = now.inflight;
  const mebibytes = (count) => `${(count / 2 ** 20).toFixed(1)} MiB`;
  held.textContent = `In the daemon: ${requests} requests, ${mebibytes(bytes)} received, ` +
    `${mebibytes(decoded)} decoded. Rates and times are those of the last ${WINDOW} seconds.`;
}

// Runs as long as the page is open. Calls `told` with the ready models as one text, or null if the daemon does not
// answer, and with whether the daemon refused the request.
export async function watch(table, held, told) {
  const answers = [];
  for (;;) {
    if (!document.hidden) {
      let refused = false;
      try {
        const response = await ask("/v1/load");
        refused = isRefused(response);
        if (!response.ok) throw new Error(`${response.status}`);
        answers.push(await response.json());
        if (answers.length > KEPT) answers.shift();
        show(answers, table, held);
        told(answers.at(-1).models.map(keyOf).join(), false);
      } catch {
        // A restarted daemon counts from zero.
        answers.length = 0;
        told(null, refused);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, POLL));
  }
}
