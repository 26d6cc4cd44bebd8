// Charts of the last minute, drawn as SVG: lines, stacked areas and bars, with axes.

import {element} from "./overlay.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 360, HEIGHT = 150, LEFT = 54, RIGHT = 8, TOP = 8, BOTTOM = 20;
const TICKS = 3;

function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// The smallest of 1, 2 and 5 times a power of ten that is not below `value`.
export function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(value)), times = [1, 2, 5, 10].find((one) => one * power >= value * (1 - 1e-9));
  return times * power;
}

// Where the axis has its marks: from 0 on, the last not below `most`.
export function ticksOf(most) {
  const step = niceStep((most > 0 ? most : TICKS) / TICKS), count = Math.max(1, Math.ceil(most / step - 1e-9));
  return Array.from({length: count + 1}, (_, i) => i * step);
}

const xOf = (share) => LEFT + share * (WIDTH - LEFT - RIGHT);
const yOf = (value, top) => HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);

function axesOf(ticks, told, marks) {
  const top = ticks.at(-1);
  return [
    ...ticks.flatMap((value) => [
      shape("line", {class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: yOf(value, top), y2: yOf(value, top)}),
      shape("text", {x: LEFT - 6, y: yOf(value, top) + 4, "text-anchor": "end"}, told(value)),
    ]),
    ...marks.map(([share, text, anchor]) => shape("text", {x: xOf(share), y: HEIGHT - 5, "text-anchor": anchor}, text)),
  ];
}

// The parts of a line between its gaps, as a path; nulls are gaps.
function lineOf(values, shares, top) {
  let path = "";
  values.forEach((value, i) => {
    if (value === null) return;
    const isStart = i === 0 || values[i - 1] === null;
    const at = `${xOf(shares[i]).toFixed(1)},${yOf(value, top).toFixed(1)}`;
    // A point alone is drawn as a short line.
    path += isStart ? `M${at}${values[i + 1] ?? null === null ? "h1.5" : ""}` : `L${at}`;
  });
  return path;
}

function areaOf(below, above, shares, top) {
  const point = (value, i) => `${xOf(shares[i]).toFixed(1)},${yOf(value, top).toFixed(1)}`;
  const back = below.map(point).reverse();
  return above.length > 1 ? `M${above.map(point).join("L")}L${back.join("L")}Z` : "";
}

function finish(figure, title, series, told, shapes) {
  const svg = figure.querySelector("svg") ?? shape("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img"});
  const last = series.map(({name, values}) => [name, values.at(-1) ?? null])
    .map(([name, value]) => [name, value === null ? "–" : told(value)]);
  svg.setAttribute("aria-label", `${title}: ${last.map((pair) => pair.join(" ")).join(", ")}`);
  svg.replaceChildren(...shapes);
  const legend = element("figcaption", {}, element("b", {}, title), ...series.map(({className}, i) => element(
    "span", {className: `key ${className}`}, last[i].join(" "))));
  figure.replaceChildren(legend, svg);
}

// `ages` are the seconds before now of each value, the oldest first; `span` is what the axis shows. `series` are [{name,
// className, values}], with null for no value. `told(value)` writes a value with its unit.
export function drawLines(figure, {title, series, ages, span, told, isStacked = false}) {
  const shares = ages.map((age) => 1 - Math.min(1, age / span)), marks = [
    [0, `${span} s ago`, "start"], [0.5, `${span / 2} s`, "middle"], [1, "now", "end"]];
  const heights = isStacked ? ages.map((_, i) => series.reduce((sum, {values}) => sum + (values[i] ?? 0), 0))
    : series.flatMap(({values}) => values.filter((value) => value !== null));
  const ticks = ticksOf(Math.max(0, ...heights)), top = ticks.at(-1);
  let below = ages.map(() => 0);
  const drawn = series.map(({className, values}) => {
    if (!isStacked) return shape("path", {class: `line ${className}`, d: lineOf(values, shares, top)});
    const above = below.map((value, i) => value + (values[i] ?? 0)), path = areaOf(below, above, shares, top);
    below = above;
    return shape("path", {class: `area ${className}`, d: path});
  });
  finish(figure, title, series, told, [...axesOf(ticks, told, marks), ...drawn]);
}

// `bars` are [[name, value]]; at most so many that their names can be read.
export function drawBars(figure, {title, bars, className, told}) {
  const ticks = ticksOf(Math.max(0, ...bars.map(([, value]) => value))), top = ticks.at(-1), wide = 1 / Math.max(8, bars.length);
  const marks = bars.map(([name], i) => [(i + 0.5) * wide, name, "middle"]);
  const drawn = bars.map(([, value], i) => shape("rect", {
    class: `area ${className}`, x: xOf((i + 0.15) * wide), width: 0.7 * (xOf(wide) - LEFT), y: yOf(value, top),
    height: Math.max(0, HEIGHT - BOTTOM - yOf(value, top)),
  }));
  const series = bars.map(([name, value]) => ({name: `${name}:`, className, values: [value]}));
  finish(figure, title, series, told, [...axesOf(ticks, told, marks), ...drawn]);
}
