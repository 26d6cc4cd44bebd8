// The models' current load, from polling /v1/load once per second. The page shows what its counters have grown by over the
// last ten seconds. Only ready model versions have counters there, and a version that is loaded again counts from zero.

import {drawBars, drawLines} from "./charts.js";
import {showStates} from "./loading.js";
import {keyOf} from "./models.js";
import {element} from "./overlay.js";
import {ask, isRefused, refusalOf} from "./token.js";

const $ = (id) => document.getElementById(id);

const POLL = 1000, TIMEOUT = 10000;
// The seconds that rates are about, and those of which answers are kept.
const WINDOW = 10, KEPT = 60;
// Answers come a little later than once per second, so the one at the window's start may be older than it by this.
const LATE = 0.5;
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
  /** @type {[string, number][]} */
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

// There may be hundreds of models, and a minute's answers are gone through every second: what is looked for in them is
// found once.
const indices = new WeakMap();
const indexOf = (answer) => indices.get(answer);
// The total of a model version, or of all if `key` is empty; undefined for a version that was not listed yet.
const totalOf = (answer, key) => key ? indexOf(answer).counted.get(key)?.total : indexOf(answer).sum;

// By model version, what it counts `now`, what its loads before this one counted (`base`), and the `total`, which only grows.
// `last` is the same of the answer before, undefined if there is none. A version that is not listed any more keeps its total, so
// that the sum of all does not fall.
function countedOf(models, last) {
  const counted = new Map(last);
  for (const now of models) {
    const before = counted.get(keyOf(now));
    const isAnew = before && ["answered", "failed", "pictures", "passes"].some((name) => now[name] < before.now[name]);
    const base = isAnew ? before.total : before?.base;
    counted.set(keyOf(now), {now, base, total: base ? {...summed([base, now]), queued: now.queued} : now});
  }
  return counted;
}

// Adds an answer of /v1/load to those of the last KEPT seconds, and drops older ones. There are gaps between them while the page
// is hidden, and the daemon's clock may be set back.
export function keep(answers, answer) {
  const isRecent = ({time}) => time <= answer.time && time >= answer.time - KEPT;
  answers.splice(0, answers.length, ...answers.filter(isRecent).slice(1 - KEPT));
  const counted = countedOf(answer.models, answers.length ? indexOf(answers.at(-1)).counted : undefined);
  const queued = answer.models.reduce((all, one) => all + one.queued, 0);
  const keys = new Set(answer.models.map(keyOf)), states = new Map(answer.states.map((one) => [keyOf(one), one]));
  indices.set(answer, {counted, keys, states, sum: {...summed([...counted.values()].map(({total}) => total)), queued}});
  answers.push(answer);
}

// The index of the first of the answers that are in the WINDOW seconds before the one at `last`.
const firstOf = (answers, last) => answers.findIndex(({time}) => time >= answers[last].time - WINDOW - LATE);

// Rows stay as long as their models do, and only texts that change are written, so that what somebody selected there
// stays selected.
function rowOf(rows, key) {
  if (rows.has(key)) return rows.get(key);
  const row = document.createElement("tr"), head = document.createElement("th");
  row.dataset.key = head.textContent = key;
  head.scope = "row";
  row.append(head, ...Array.from({length: 12}, () => document.createElement("td")));
  row.children[2].append(sparkline());
  return row;
}

function fill(row, line, history, state) {
  drawHistory(row.children[2].firstChild, history);
  const told = line.failures.map(([name, rate]) => `${rate.toFixed(1)} ${name}`).join(", ");
  const texts = {
    1: line.requests.toFixed(1), 3: duration(line.median), 4: duration(line.slow), 5: duration(line.waits),
    6: duration(line.computes), 7: line.batch === null ? "–" : line.batch.toFixed(2), 8: String(line.queued),
    9: told || "0.0", 10: line.cancelled.toFixed(1),
    11: [state?.device, state?.precision].filter(Boolean).join(", ") || "–",
    12: state ? `${Number(state.load_seconds.toPrecision(2))} s` : "–",
  };
  for (const [i, text] of Object.entries(texts)) {
    if (row.children[i].textContent !== text) row.children[i].textContent = text;
  }
  row.children[9].classList.toggle("bad", line.failed > 0);
}

const mebibytes = (count) => `${(count / 2 ** 20).toFixed(count < 10 * 2 ** 20 ? 1 : 0)} MiB`;

// The counters of several models as those of one.
export function summed(models) {
  const add = (a, b) => Object.fromEntries([...new Set([...Object.keys(a), ...Object.keys(b)])].map(
    (key) => [key, (a[key] ?? 0) + (b[key] ?? 0)]));
  const parts = ["seconds", "failed_by_reason", "passes_by_batch_size"], plain = ["answered", "failed", "pictures", "passes", "queued"];
  return models.reduce((all, one) => ({
    ...Object.fromEntries(parts.map((part) => [part, add(all[part], one[part])])),
    ...Object.fromEntries(plain.map((name) => [name, all[name] + one[name]])),
    // All models have the same buckets.
    answered_by_seconds: one.answered_by_seconds.map(([bound, count], i) => [bound, count + (all.answered_by_seconds[i]?.[1] ?? 0)]),
  }), {...Object.fromEntries(parts.map((part) => [part, {}])), ...Object.fromEntries(plain.map((name) => [name, 0])),
       failed_by_reason: {REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0}, answered_by_seconds: []});
}

const STAGES = ["decode", "queue", "infer", "encode"];

// The figures of each of the last answers, over the WINDOW seconds before it, for the model or for all if `key` is empty. An
// answer without another in these seconds has none.
export function courseOf(answers, key) {
  const counters = answers.map((answer) => totalOf(answer, key));
  const now = answers.at(-1).time;
  return answers.slice(1).flatMap((answer, i) => {
    const from = firstOf(answers, i + 1), [old, young] = [counters[from], counters[i + 1]];
    if (from > i || (key && !indexOf(answer).keys.has(key))) return [];
    const seconds = Math.max(0.001, answer.time - answers[from].time), answered = young.answered - (old?.answered ?? 0);
    const stages = STAGES.map((stage) =>
      answered > 0 ? ((young.seconds[stage] ?? 0) - (old?.seconds[stage] ?? 0)) / answered : null);
    return [{age: now - answer.time, ...rates(old, young, seconds), stages, resident: answer.memory.resident_bytes / 2 ** 20,
             onGpus: answer.gpus.reduce((sum, {used_bytes: used}) => sum + (used ?? 0), 0) / 2 ** 20}];
  });
}

function drawCharts(answers, key) {
  const course = courseOf(answers, key), ages = course.map(({age}) => age), span = KEPT;
  const values = (name) => course.map((one) => one[name]);
  const perSecond = (rate) => `${Number(rate.toPrecision(2))}/s`;
  drawLines($("chart-requests"), {title: "Requests", ages, span, told: perSecond, series: [
    {name: "answered", className: "infer", values: values("requests")},
    {name: "failed", className: "wrong", values: values("failed")},
    {name: "cancelled", className: "rest", values: values("cancelled")}]});
  drawLines($("chart-latency"), {title: "Latency", ages, span, told: duration, series: [
    {name: "median", className: "infer", values: values("median")},
    {name: "99 %", className: "queue", values: values("slow")}]});
  drawLines($("chart-stages"), {title: "Stages of a request", ages, span, told: duration, isStacked: true,
                                series: STAGES.map((name, i) => ({name, className: name, values: course.map(({stages}) => stages[i])}))});
  const [old, young] = [answers[0], answers.at(-1)].map((answer) => totalOf(answer, key));
  /** @type {[string, number][]} */
  const grown = Object.entries(young?.passes_by_batch_size ?? {}).map(
    ([size, count]) => [size, count - (old?.passes_by_batch_size[size] ?? 0)]);
  const sizes = grown.filter(([, count]) => count > 0).sort((a, b) => Number(a[0]) - Number(b[0]));
  // Names of more bars could not be read: the largest sizes are one bar.
  const MOST = 12, rest = sizes.slice(MOST - 1), sum = rest.reduce((all, [, count]) => all + count, 0);
  const bars = sizes.length > MOST ? [...sizes.slice(0, MOST - 1), [`≥${rest[0][0]}`, sum]] : sizes;
  drawBars($("chart-batches"), {title: "Passes by batch size", bars, className: "decode", told: (count) => String(Number(count.toPrecision(3)))});
  drawLines($("chart-queue"), {title: "Requests that wait", ages, span, told: (count) => String(Number(count.toPrecision(3))),
                               series: [{name: "queue", className: "queue", values: values("queued")}]});
  const memory = [{name: "resident", className: "encode", values: values("resident")}];
  if (answers.at(-1).gpus.length) memory.push({name: "GPUs, of all programs", className: "infer", values: values("onGpus")});
  drawLines($("chart-memory"), {title: "Memory of the daemon", ages, span, told: (count) => `${Number(count.toPrecision(3))} MiB`,
                                series: memory});
}

// What the GPUs' driver tells; a daemon without a GPU has none to tell of.
const gpuMemoryOf = (gpus) => gpus.length === 0 ? "– (no GPU)" : gpus.map(({used_bytes: used, total_bytes: total}) =>
  used === null || total === null ? "not known" : `${mebibytes(used)} of ${mebibytes(total)} used`).join(", ");

function showFacts({server_version: version, memory, gpus, states, time}) {
  const devices = [...new Set(states.map(({device}) => device).filter(Boolean))].join(", ");
  const facts = [["Version", version], ["Devices", devices || "–"], ["Memory of the daemon", mebibytes(memory.resident_bytes)],
                 ["Memory of the machine", `${mebibytes(memory.available_bytes)} of ${mebibytes(memory.total_bytes)} free`],
                 ["Memory of the GPUs", gpuMemoryOf(gpus)],
                 ["The daemon's clock", new Date(1000 * time).toLocaleTimeString()]];
  const there = [...$("facts").querySelectorAll("dd")];
  if (there.length !== facts.length) {
    $("facts").replaceChildren(...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  }
  there.forEach((one, i) => one.textContent !== facts[i][1] && (one.textContent = facts[i][1]));
}

function offerModels(models) {
  const keys = models.map(keyOf), select = $("load-model");
  if ([...select.options].slice(1).map(({value}) => value).join("\n") === keys.join("\n")) return;
  const before = select.value;
  select.replaceChildren(new Option("all models", ""), ...keys.map((key) => new Option(key, key)));
  if (keys.includes(before)) select.value = before;
}

let kept = [];

// What the tab shows beside the table; nothing as long as it is hidden.
export function showLoadTab() {
  const now = kept.at(-1);
  if ($("load-view").hidden || !now) return;
  showFacts(now);
  showStates(now.states);
  offerModels(now.models);
  drawCharts(kept, $("load-model").value);
}

function show(answers, table, held) {
  const now = answers.at(-1), before = answers[firstOf(answers, answers.length - 1)];
  const seconds = Math.max(0.001, now.time - before.time);
  const known = new Map([...table.children].map((row) => [row.dataset.key, row]));
  const rows = now.models.map((model) => {
    const key = keyOf(model), row = rowOf(known, key);
    const history = answers.slice(1).map((answer, i) => {
      const [old, young] = [totalOf(answers[i], key), totalOf(answer, key)];
      return young ? (young.answered - (old?.answered ?? 0)) / Math.max(0.001, answer.time - answers[i].time) : 0;
    });
    fill(row, rates(totalOf(before, key), totalOf(now, key), seconds), history, indexOf(now).states.get(key));
    return row;
  });
  // Moving a row would lose the selection in it.
  if (rows.length !== table.children.length || rows.some((row, i) => row !== table.children[i])) table.replaceChildren(...rows);
  const {requests, bytes, decoded_bytes: decoded} = now.inflight;
  const text = `In the daemon: ${requests} requests, ${mebibytes(bytes)} received, ` +
    `${mebibytes(decoded)} decoded. Rates and times are those of the last ${WINDOW} seconds, of answered requests.`;
  if (held.textContent !== text) held.textContent = text;
  kept = answers;
  showLoadTab();
}

// Runs as long as the page is open; while it is hidden, only until the first answer. Calls `told` with the last answer of
// /v1/load and "", or with null and what is wrong.
export async function watch(table, held, told) {
  const answers = [];
  let last = null;
  for (;;) {
    if (!document.hidden || !last) {
      let wrong = "does not answer; trying again";
      const late = new AbortController(), timer = setTimeout(() => late.abort(), TIMEOUT);
      try {
        const response = await ask("/v1/load", late.signal), answer = await response.json();
        if (isRefused(response)) wrong = refusalOf(answer.error);
        if (!response.ok) throw new Error(answer.error);
        keep(answers, answer);
        last = new Date();
        $("load").classList.remove("stale");
        table.parentElement.classList.remove("stale");
        show(answers, table, held);
        told(answer, "");
      } catch {
        // A restarted daemon counts from zero.
        answers.length = 0;
        $("load").classList.add("stale");
        table.parentElement.classList.add("stale");
        if (last) held.textContent = `No longer up to date: ${location.host} ${wrong}. These are the figures of ${last.toLocaleTimeString()}.`;
        told(null, wrong);
      } finally {
        clearTimeout(timer);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, POLL));
  }
}
