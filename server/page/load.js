// The models' current load, from polling /v1/load once per second. Its counters only grow; the page shows their
// differences over the last ten seconds.

import {ask, isRefused, refusalOf} from "./token.js";

const POLL = 1000, WINDOW = 10, KEPT = 60;
// Of fewer requests, one in a hundred says nothing.
const MIN_SAMPLES = 100;
// Triton's reasons, as the table names them. Cancelled requests are no failures of the daemon.
const REASONS = {REJECTED: "rejected", BACKEND: "failed in the model", OTHER: "other"};
const SVG = "http://www.w3.org/2000/svg";

// Two digits: the histogram's buckets grow by a fifth, so further ones would be invented.
export const duration = (seconds) => {
  if (seconds === null) return "–";
  const value = Number((1000 * seconds).toPrecision(2));
  return value < 1000 ? `${value} ms` : `${Number(seconds.toPrecision(2))} s`;
};

// A quantile of the answered requests' durations, from cumulative histograms; interpolates linearly within a bucket.
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
  const answered = grown("answered"), by = later.answered_by_seconds, before = earlier?.answered_by_seconds;
  const failures = Object.entries(REASONS).map(([reason, name]) =>
    [name, (later.failed_by_reason[reason] - (earlier?.failed_by_reason[reason] ?? 0)) / seconds]);
  return {
    requests: answered / seconds,
    failed: failures.reduce((sum, [, rate]) => sum + rate, 0),
    failures: failures.filter(([, rate]) => rate > 0),
    cancelled: (later.failed_by_reason.CANCELED - (earlier?.failed_by_reason.CANCELED ?? 0)) / seconds,
    median: quantile(before, by, 0.5),
    slow: answered >= MIN_SAMPLES ? quantile(before, by, 0.99) : null,
    waits: answered > 0 ? spent("queue") / answered : null,
    computes: answered > 0 ? spent("infer") / answered : null,
    batch: grown("passes") > 0 ? grown("pictures") / grown("passes") : null,
    queued: later.queued,
  };
}

function sparkline() {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${KEPT - 1} 20`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  svg.append(document.createElementNS(SVG, "path"));
  return svg;
}

function drawHistory(svg, values) {
  const most = Math.max(1, ...values);
  const places = values.map((value, i) => `${(KEPT - values.length + i).toFixed(1)},${(19 - 18 * value / most).toFixed(1)}`);
  svg.firstChild.setAttribute("d", places.length > 1 ? `M${places.join("L")}` : "");
}

const keyOf = (model) => `${model.name} ${model.version}`;
const find = (answer, key) => answer.models.find((model) => keyOf(model) === key);

// Rows stay as long as their models do, and only texts that change are written, so that what somebody selected there
// stays selected.
function rowOf(table, key) {
  const there = [...table.children].find((row) => row.dataset.key === key);
  if (there) return there;
  const row = document.createElement("tr"), head = document.createElement("th");
  row.dataset.key = head.textContent = key;
  head.scope = "row";
  row.append(head, ...Array.from({length: 10}, () => document.createElement("td")));
  row.children[2].append(sparkline());
  return row;
}

function fill(row, line, history) {
  drawHistory(row.children[2].firstChild, history);
  const told = line.failures.map(([name, rate]) => `${rate.toFixed(1)} ${name}`).join(", ");
  const texts = {
    1: line.requests.toFixed(1), 3: duration(line.median), 4: duration(line.slow), 5: duration(line.waits),
    6: duration(line.computes), 7: line.batch === null ? "–" : line.batch.toFixed(2), 8: String(line.queued),
    9: told || "0.0", 10: line.cancelled.toFixed(1),
  };
  for (const [i, text] of Object.entries(texts)) {
    if (row.children[i].textContent !== text) row.children[i].textContent = text;
  }
  row.children[9].classList.toggle("bad", line.failed > 0);
}

function show(answers, table, held) {
  const now = answers.at(-1), before = answers.at(-1 - WINDOW) ?? answers[0];
  const seconds = Math.max(0.001, now.time - before.time);
  const rows = now.models.map((model) => {
    const key = keyOf(model), row = rowOf(table, key);
    const history = answers.slice(1).map((answer, i) => {
      const [old, young] = [find(answers[i], key), find(answer, key)];
      return young ? Math.max(0, young.answered - (old?.answered ?? 0)) / (answer.time - answers[i].time) : 0;
    });
    fill(row, rates(find(before, key), model, seconds), history);
    return row;
  });
  // Moving a row would lose the selection in it.
  if (rows.length !== table.children.length || rows.some((row, i) => row !== table.children[i])) table.replaceChildren(...rows);
  const {requests, bytes, decoded_bytes: decoded} = now.inflight;
  const mebibytes = (count) => `${(count / 2 ** 20).toFixed(1)} MiB`;
  const text = `In the daemon: ${requests} requests, ${mebibytes(bytes)} received, ` +
    `${mebibytes(decoded)} decoded. Rates and times are those of the last ${WINDOW} seconds, of answered requests.`;
  if (held.textContent !== text) held.textContent = text;
}

// Runs as long as the page is open. Calls `told` with the last answer of /v1/load and "", or with null and what is wrong.
export async function watch(table, held, told) {
  const answers = [];
  let last = null;
  for (;;) {
    if (!document.hidden) {
      let wrong = "does not answer; trying again";
      try {
        const response = await ask("/v1/load"), answer = await response.json();
        if (isRefused(response)) wrong = refusalOf(answer.error);
        if (!response.ok) throw new Error(answer.error);
        answers.push(answer);
        if (answers.length > KEPT) answers.shift();
        last = new Date();
        table.parentElement.classList.remove("stale");
        show(answers, table, held);
        told(answer, "");
      } catch {
        // A restarted daemon counts from zero.
        answers.length = 0;
        table.parentElement.classList.add("stale");
        if (last) held.textContent = `No longer up to date: ${location.host} ${wrong}. These are the figures of ${last.toLocaleTimeString()}.`;
        told(null, wrong);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, POLL));
  }
}
