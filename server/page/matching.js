// Compares two answers of one task to one picture: which of their findings belong together.

import {findingsOf} from "./findings.js";

// From this overlap on, two boxes of one class are the same object.
const MIN_IOU = 0.5;

export function iouOfBoxes(a, b) {
  const width = Math.min(a.x_max, b.x_max) - Math.max(a.x_min, b.x_min);
  const height = Math.min(a.y_max, b.y_max) - Math.max(a.y_min, b.y_min);
  if (width <= 0 || height <= 0) return 0;
  const area = (one) => (one.x_max - one.x_min) * (one.y_max - one.y_min);
  return width * height / (area(a) + area(b) - width * height);
}

function iouOfSpans(a, b) {
  const both = Math.min(a.end_seconds, b.end_seconds) - Math.max(a.start_seconds, b.start_seconds);
  if (both <= 0) return 0;
  return both / (a.end_seconds - a.start_seconds + b.end_seconds - b.start_seconds - both);
}

// Returns {both: [[i, j, overlap]], first: [i], second: [j]}: each finding is in one pair at most, and pairs with the largest
// overlap are made first. `one` and `two` are the indices to look at, `overlap(i, j)` is from 0 to 1.
export function match(one, two, overlap, least) {
  const pairs = one.flatMap((i) => two.map((j) => [i, j, overlap(i, j)])).filter(([, , share]) => share >= least);
  pairs.sort((a, b) => b[2] - a[2]);
  const usedOne = new Set(), usedTwo = new Set();
  const both = pairs.filter(([i, j]) => {
    if (usedOne.has(i) || usedTwo.has(j)) return false;
    usedOne.add(i);
    usedTwo.add(j);
    return true;
  });
  both.sort((a, b) => a[0] - b[0]);
  return {both, first: one.filter((i) => !usedOne.has(i)), second: two.filter((j) => !usedTwo.has(j))};
}

// How two findings overlap, by the task: boxes and spans of one class by area and time, others by their names alone.
/** @returns {{overlap: (i: number, j: number) => number, isIou: boolean}} */
function overlapOf(a, b) {
  const boxes = [a.detections?.detections, b.detections?.detections], spans = [a.actions?.actions, b.actions?.actions];
  /** @type {(lists: any[], iou: any) => (i: number, j: number) => number} */
  const of = ([one, two], iou) => (i, j) => {
    const named = (finding) => finding.label || `class ${finding.class_index}`;
    return named(one[i]) === named(two[j]) ? iou(one[i], two[j]) : 0;
  };
  if (boxes[0] && boxes[1]) return {overlap: of(boxes, (x, y) => iouOfBoxes(x.box, y.box)), isIou: true};
  if (spans[0] && spans[1]) return {overlap: of(spans, iouOfSpans), isIou: true};
  const [one, two] = [findingsOf(a), findingsOf(b)];
  return {overlap: (i, j) => Number(one[i].name === two[j].name), isIou: false};
}

// Returns {both, first, second}, lists of {name, first, second, overlap, places}; what an answer lacks is null.
export function compared(a, b, visibleA, visibleB) {
  const {overlap, isIou} = overlapOf(a, b), pairs = match(visibleA, visibleB, overlap, MIN_IOU);
  const [one, two] = [findingsOf(a), findingsOf(b)];
  return {
    both: pairs.both.map(([i, j, share]) => ({name: one[i].name, first: one[i].value, second: two[j].value,
                                              overlap: isIou ? share : null, places: [i, j]})),
    first: pairs.first.map((i) => ({name: one[i].name, first: one[i].value, second: null, overlap: null, places: [i, null]})),
    second: pairs.second.map((j) => ({name: two[j].name, first: null, second: two[j].value, overlap: null, places: [null, j]})),
  };
}
