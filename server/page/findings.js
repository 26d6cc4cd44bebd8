// Shows an answer as text: the list beside the picture, and the timings.

import {colourOf, element, letChoose, ordinalsOf} from "./overlay.js";
import {nameOf} from "./text.js";

const percent = (share) => `${(100 * share).toFixed(1)}%`;
// Minutes, seconds and tenths.
export const clock = (seconds) => {
  const tenths = Math.round(10 * seconds), two = (number) => String(number).padStart(2, "0");
  return `${two(Math.floor(tenths / 600))}:${two(Math.floor(tenths / 10) % 60)}.${tenths % 10}`;
};
// How many values of an embedding are listed.
const FIRST_VALUES = 8;
const lengthOf = (values) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
// The text of a value of an answer's map: disparities are in pixels, depths in the model's own unit.
export const mapValue = ({isDepth}, value, digits) => isDepth ? value.toPrecision(4) : `${value.toFixed(digits)} px`;
export const mapName = ({isDepth}) => isDepth ? "depth" : "disparity";
const pixels = (count) => `${Number(count).toLocaleString("en")} px`;

// The classes among detections or actions, the most frequent first: [{index, name, count}].
export function namesOf(found) {
  const classes = new Map();
  for (const finding of found) {
    const {class_index} = finding, one = classes.get(class_index) ?? {index: String(class_index), name: nameOf(finding), count: 0};
    ++one.count;
    classes.set(class_index, one);
  }
  return [...classes.values()].sort((a, b) => b.count - a.count);
}

// What a crop's model says, shortly: "species: robin 93.1%".
function cropText({model, classification, detections, embedding, error}) {
  const best = classification?.classes?.[0];
  if (best) return `${model}: ${best.label || `class ${best.index}`} ${percent(best.probability)}`;
  if (embedding) return `${model}: ${embedding.values.length} values`;
  return `${model}: ${error || `${detections?.detections?.length ?? 0} found`}`;
}

// Returns [{colour, name, value, share, where}] for any task. Entries without `colour` have no swatch, those without
// `share` no bar.
export function findingsOf(answer) {
  if (answer.classification) {
    return answer.classification.classes.map((one) => (
      {name: nameOf(one), value: percent(one.probability), share: one.probability}));
  }
  if (answer.detections) {
    const ordinals = ordinalsOf(answer.detections.detections);
    return answer.detections.detections.map(({box, score, class_index, label, mask, keypoints, crops}, n) => ({
      colour: colourOf(class_index, ordinals[n]), name: nameOf({label, class_index}), value: percent(score), share: score,
      where: `x ${box.x_min.toFixed(0)}–${box.x_max.toFixed(0)}, y ${box.y_min.toFixed(0)}–${box.y_max.toFixed(0)}` +
        (mask ? `, mask ${pixels(mask.area)}` : "") + (keypoints?.length ? `, ${keypoints.length} keypoints` : "") +
        (crops ?? []).map((one) => `, ${cropText(one)}`).join(""),
    }));
  }
  if (answer.segmentation) {
    return answer.segmentation.areas.map((area) => ({
      colour: colourOf(area.class_index), name: nameOf(area), value: percent(area.fraction),
      share: area.fraction, where: pixels(area.pixels),
    }));
  }
  if (answer.actions) {
    return answer.actions.actions.map((one) => ({
      colour: colourOf(one.class_index), name: nameOf(one), value: percent(one.score), share: one.score,
      where: `${clock(one.start_seconds)}–${clock(one.end_seconds)}`,
    }));
  }
  if (answer.restoration) {
    const {min, max, shape} = answer.restoration;
    return [["min", min], ["max", max]].map(([name, value]) => (
      {name: `${name} value`, value: value.toPrecision(4), where: shape.type.toLowerCase()}));
  }
  if (answer.disparity) {
    const {min, max, mean} = answer.disparity;
    return [["min", min], ["mean", mean], ["max", max]].map(([name, value]) => (
      {name: `${name} ${mapName(answer)}`, value: mapValue(answer, value, 2), share: max > 0 ? value / max : 0}));
  }
  if (answer.embedding) {
    const {values} = answer.embedding;
    const row = (name, value) => ({name, value: value.toPrecision(4)});
    return [row("length", lengthOf(values)), ...values.slice(0, FIRST_VALUES).map((value, n) => row(`value ${n}`, value))];
  }
  return [];
}

export const foundText = (count) => count === 0 ? "Nothing found" : `${count} found`;

// `count` is how many of the findings the filter lets through.
export function summaryOf(answer, count) {
  const size = `${answer.picture_width}×${answer.picture_height}`;
  const from = `${answer.model} ${answer.version}, ${size}, batch of ${answer.batch_size}`;
  if (answer.classification) {
    const best = answer.classification.classes[0];
    return best ? `${nameOf(best)} (${percent(best.probability)}) · ${from}` : from;
  }
  if (answer.detections) {
    return `${foundText(count)} · ${from}`;
  }
  if (answer.actions) {
    const {frames, frames_per_second: rate} = answer.actions;
    return `${foundText(count)} in ${frames} frames, ${rate} a second · ` +
      from;
  }
  if (answer.restoration) {
    const {shape, min, max} = answer.restoration;
    return `${shape.depth} × ${shape.height} × ${shape.width} voxels, ${min.toPrecision(4)} to ` +
      `${max.toPrecision(4)} · ${from}`;
  }
  if (answer.segmentation) return `${answer.segmentation.areas.length} classes · ${from}`;
  if (answer.embedding) {
    const {values} = answer.embedding;
    return `${values.length} values of length ${lengthOf(values).toPrecision(4)} · ${from}`;
  }
  const {min, max} = answer.disparity;
  return `${answer.isDepth ? min.toPrecision(4) : min.toFixed(1)} to ${mapValue(answer, max, 1)} of ${mapName(answer)} · ${from}`;
}

// Lists the findings in `visible`, which are indices. `choose(place)` is called with the index of the finding that is
// pressed, or null when it is released.
export function showFindings(list, answer, visible, choose) {
  const choosable = answer.detections || answer.segmentation || answer.actions;
  const findings = findingsOf(answer);
  list.replaceChildren(...visible.map((place) => {
    const one = findings[place], coloured = one.colour !== undefined, swatch = element("span", {className: "swatch"});
    if (coloured) swatch.style.background = one.colour;
    const bar = element("span", {className: "bar"}, element("i", {}));
    bar.hidden = one.share === undefined;
    bar.firstChild.style.width = percent(Math.min(1, Math.max(0, one.share ?? 0)));
    // Choosable findings are buttons, so that they can be reached with the keyboard.
    const button = element(choosable ? "button" : "div", {className: coloured ? "finding" : "finding plain"},
                           ...(coloured ? [swatch] : []), element("span", {}, one.name),
                           element("span", {className: "value"}, one.value),
                           bar);
    if (one.where) button.append(element("span", {className: "where"}, one.where));
    button.dataset.place = place;
    if (choosable) letChoose(list, button, place, choose);
    return element("li", {}, button);
  }));
  if (!list.childElementCount) list.append(element("li", {className: "hint"}, "Nothing found"));
}

// [name, milliseconds] of each stage, of what lies between them, and of all.
/** @returns {[string, number][]} */
export function durationsOf(timings) {
  const milliseconds = (text) => 1000 * parseFloat(text ?? "0");
  const total = milliseconds(timings.total);
  /** @type {[string, number][]} */
  const stages = ["decode", "queue", "infer", "encode"].map((name) => [name, milliseconds(timings[name])]);
  stages.push(["rest", Math.max(0, total - stages.reduce((sum, [, took]) => sum + took, 0))]);
  return [...stages, ["total", total]];
}

export function showTimings(bar, list, timings, roundTrip) {
  const durations = durationsOf(timings), stages = durations.slice(0, -1), [, total] = durations.at(-1);
  bar.replaceChildren(...stages.map(([name, took]) => {
    const part = element("span", {className: name});
    part.style.width = `${total > 0 ? 100 * took / total : 0}%`;
    return part;
  }));
  const rows = [...stages, ["total", total], ["round trip", roundTrip]];
  list.replaceChildren(...rows.flatMap(([name, took]) => [
    element("dt", {className: stages.some(([stage]) => stage === name) ? name : ""}, name),
    element("dd", {}, `${took.toFixed(1)} ms`)]));
}
