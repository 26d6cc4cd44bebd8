// A second model, or another version, that answers the same request: what both found, what one of them, and how long each
// took.

import {durationsOf} from "./findings.js";
import {compared} from "./matching.js";
import {keyOf} from "./models.js";
import {element} from "./overlay.js";

const $ = (id) => document.getElementById(id);

// Offers the models of the same task, every ready version of them.
export function offerRivals(models, chosen) {
  const before = $("rival").value;
  const others = models.filter((one) => chosen && one.task === chosen.task && one !== chosen);
  $("rival").replaceChildren(new Option("no other model", ""), ...others.map((one) => new Option(keyOf(one), keyOf(one))));
  if (others.some((one) => keyOf(one) === before)) $("rival").value = before;
  $("rival-field").hidden = !others.length;
}

export const rivalOf = (models) => $("rival-field").hidden ? null : models.find((one) => keyOf(one) === $("rival").value) ?? null;

function rowOf(name, cells) {
  return element("tr", {}, element("th", {scope: "row"}, name), ...cells.map((text) => element("td", {}, text ?? "–")));
}

function groupOf(title, count) {
  const head = element("th", {scope: "rowgroup", colSpan: 4, className: "group"}, `${title}: ${count}`);
  return element("tr", {}, head);
}

// Shows the comparison of two answers, of the findings that the filter lets through.
export function showComparison(first, second, visibleFirst, visibleSecond) {
  const pairs = compared(first, second, visibleFirst, visibleSecond);
  const [one, two] = [first, second].map(({model, version}) => `${model} ${version}`);
  $("compare").hidden = false;
  $("compare-first").textContent = one;
  $("compare-second").textContent = two;
  $("compare-summary").textContent =
    `${pairs.both.length} in both, ${pairs.first.length} only in ${one}, ${pairs.second.length} only in ${two}`;
  const percent = (share) => share === null ? null : `${(100 * share).toFixed(0)}%`;
  const rows = [["In both", pairs.both], [`Only in ${one}`, pairs.first], [`Only in ${two}`, pairs.second]].flatMap(
    ([title, list]) => [groupOf(title, list.length),
                        ...list.map((row) => rowOf(row.name, [row.first, row.second, percent(row.overlap)]))]);
  const [times, others] = [first, second].map(({timings}) => durationsOf(timings));
  const milliseconds = (took) => `${took.toFixed(1)} ms`;
  const durations = times.map(([name, took], i) => rowOf(name, [milliseconds(took), milliseconds(others[i][1]), ""]));
  const head = element("th", {scope: "rowgroup", colSpan: 4, className: "group"}, "Time");
  $("compared").replaceChildren(...rows, element("tr", {}, head), ...durations);
}

export function hideComparison() {
  $("compare").hidden = true;
  $("compared").replaceChildren();
}

// `swiped` is called with the share of the picture on which the first answer is drawn.
export function listenToSwipe(swiped) {
  const show = () => {
    const share = Number($("swipe").value);
    $("swipe-shown").textContent = `${(100 * share).toFixed(0)}%`;
    swiped(share);
  };
  $("swipe").addEventListener("input", show);
  show();
}
