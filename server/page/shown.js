// What the viewer shows: a picture, and over it what an answer found, as far as the filter lets it through.

import {liftMaps, pointAt, showMaps, stepLayer} from "./attention.js";
import {drawDetections} from "./boxes.js";
import {findingsOf, mapName, mapValue, namesOf} from "./findings.js";
import {Masks} from "./masks.js";
import {bytesOf, disparitiesOf, layerOf} from "./overlay.js";
import {drawPicture} from "./picture.js";
import {Viewer} from "./viewer.js";

const $ = (id) => document.getElementById(id);
// `rival` is the other answer of a comparison, {answer, over, masks}; `point` is what attention is asked about.
const NOTHING = {picture: null, answer: null, chosen: null, hovered: null, over: null, masks: null, values: null, map: null,
                 rival: null, point: null};
let now = {...NOTHING};
/** @type {(place: number) => void} */
let press = () => {};
/** @type {(point: {x: number, y: number}) => void} */
let pointTo = () => {};
// The share of the canvas, from the left, on which the first of two answers is drawn.
let swipe = 0.5;

// The findings that the score and the classes let through, as indices.
export function visibleOf(answer) {
  const found = answer.detections?.detections ?? answer.actions?.actions;
  if (!found) return findingsOf(answer).map((_, n) => n);
  const least = Number($("score").value), off = hiddenClasses();
  return found.flatMap(({score, class_index}, n) => score >= least && !off.has(String(class_index)) ? [n] : []);
}

const hiddenClasses = () =>
  new Set([...$("classes").querySelectorAll("input")].filter((box) => !box.checked).map((box) => box.value));

const seen = () => now.chosen === null ? visibleOf(now.answer) : [now.chosen];

// Draws the overlay of one answer. `finds` are the indices of the findings to draw.
function paintAnswer(context, view, {answer, over, masks}, finds) {
  const {picture, map} = now, seen = map && answer.explanation?.seen;
  const {width, height} = masks && !map ? {width: masks.step * masks.width, height: masks.step * masks.height} : picture.full;
  // A map covers the part that the network saw.
  const {x, y, ...size} = seen ?? {x: 0, y: 0, width, height};
  const layer = map ?? over;
  if (layer && (map || !masks || $("show-masks").checked)) {
    context.globalAlpha = Number($("opacity").value);
    context.imageSmoothingEnabled = false;
    context.drawImage(layer, view.x + view.scale * x, view.y + view.scale * y, view.scale * size.width, view.scale * size.height);
    context.globalAlpha = 1;
  }
  if (!masks) return;
  const shown = {boxes: $("show-boxes").checked, masks: $("show-masks").checked && !map, points: $("show-points").checked,
                 labels: $("show-labels").checked};
  drawDetections(context, answer.detections.detections, masks, finds, now.hovered, shown, view);
}

// A cross with a ring, dark below bright.
function paintPoint(context, view, point) {
  const x = view.x + view.scale * point.x, y = view.y + view.scale * point.y;
  for (const [style, width] of [["#000", 4], ["#fff", 2]]) {
    Object.assign(context, {strokeStyle: style, lineWidth: width});
    context.beginPath();
    context.arc(x, y, 7, 0, 2 * Math.PI);
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(x + 4 * dx, y + 4 * dy);
      context.lineTo(x + 12 * dx, y + 12 * dy);
    }
    context.stroke();
  }
}

// Names the answers at both sides of the line between them.
function paintSwipe(context, view, at) {
  context.fillStyle = "#000";
  context.fillRect(at - 2, 0, 4, view.height);
  context.fillStyle = "#fff";
  context.fillRect(at - 1, 0, 2, view.height);
  context.font = "600 13px system-ui, sans-serif";
  context.textBaseline = "top";
  const names = [now.answer, now.rival.answer].map(({model, version}) => `${model} ${version}`);
  names.forEach((name, i) => {
    const wide = context.measureText(name).width + 12, x = i === 0 ? at - wide - 6 : at + 6;
    context.fillStyle = "rgb(0 0 0 / 75%)";
    context.fillRect(x, view.height - 26, wide, 20);
    context.fillStyle = "#fff";
    context.fillText(name, x + 6, view.height - 23);
  });
}

function clipped(context, view, left, right, draw) {
  context.save();
  context.beginPath();
  context.rect(left, 0, Math.max(0, right - left), view.height);
  context.clip();
  draw();
  context.restore();
}

function paint(context, view) {
  const {picture, answer, rival, point} = now;
  if (!picture) return;
  drawPicture(context, picture, view);
  if (answer && rival) {
    // The line lies on the picture, however it is zoomed.
    const at = view.x + swipe * view.scale * picture.full.width;
    clipped(context, view, 0, at, () => paintAnswer(context, view, now, seen()));
    clipped(context, view, at, view.width, () => paintAnswer(context, view, rival, visibleOf(rival.answer)));
    paintSwipe(context, view, at);
  } else if (answer) {
    paintAnswer(context, view, now, seen());
  }
  if (point) paintPoint(context, view, point);
}

// The finding at the point: the best whose mask covers it, or else the one with the smallest box around it.
function findingAt(point) {
  const {answer, masks, values} = now;
  if (!answer || !point) return null;
  if (answer.segmentation && values) {
    const index = answer.segmentation.areas.findIndex((area) => Number(area.class_index) === values[cellOf(point)]);
    return index < 0 ? null : index;
  }
  if (!masks) return null;
  const found = answer.detections.detections, visible = visibleOf(answer);
  const covering = visible.find((n) => masks.contains(n, point.x, point.y));
  if (covering !== undefined) return covering;
  const area = ({box}) => (box.x_max - box.x_min) * (box.y_max - box.y_min);
  const around = visible.filter((n) => {
    const {box} = found[n];
    return point.x >= box.x_min && point.x < box.x_max && point.y >= box.y_min && point.y < box.y_max;
  });
  return around.sort((a, b) => area(found[a]) - area(found[b]))[0] ?? null;
}

// The index of the point in a label map, a disparity map or a depth map, which may be smaller than the picture.
function cellOf({x, y}) {
  const {width, height} = now.answer.segmentation ?? now.answer.disparity, {full} = now.picture;
  return Math.floor(y * height / full.height) * width + Math.floor(x * width / full.width);
}

function readOut(point) {
  const parts = point ? [`x ${Math.floor(point.x)}, y ${Math.floor(point.y)}`] : [];
  const place = findingAt(point);
  if (place !== null) {
    const {name, value} = findingsOf(now.answer)[place];
    parts.push(now.answer.segmentation ? name : `${name} ${value}`);
  }
  if (point && now.answer?.disparity && now.values) {
    const value = now.values[cellOf(point)];
    const name = mapName(now.answer);
    parts.push(Number.isNaN(value) ? `no ${name}` : `${mapValue(now.answer, value, 2)} of ${name}`);
  }
  $("readout").textContent = parts.join(" · ");
}

function hover(point) {
  readOut(point);
  const place = findingAt(point);
  if (place === now.hovered) return;
  now.hovered = place;
  for (const button of $("findings").querySelectorAll("button")) {
    button.classList.toggle("hovered", Number(button.dataset.place) === place);
  }
  if (now.masks) viewer.draw();
}

// The next or the last finding of the list, and of its end none.
function step(by) {
  const buttons = [...$("findings").querySelectorAll("button")];
  const at = buttons.findIndex((button) => button.ariaPressed === "true");
  if (!buttons.length) return;
  if (buttons[at + by]) buttons[at + by].click();
  else if (at < 0) buttons.at(-1).click();
  else buttons[at].click();
}

export const viewer = new Viewer($("canvas"), {
  paint, hover, step,
  keys: {"[": () => stepLayer(-1), "]": () => stepLayer(1)},
  press: (point) => {
    // With attention shown, a click asks about the point.
    if (point && now.answer?.explanation) return pointTo(point);
    const place = findingAt(point) ?? now.chosen;
    if (place !== null) press(place);
  },
});

// The picture alone, without the answer to another one. Null hides the viewer.
export function showPicture(picture) {
  now = {...NOTHING, picture};
  viewer.show(picture && {width: picture.full.width, height: picture.full.height});
  readOut(null);
}

// Another frame of the clip, with the same answer.
export function showFrame(picture) {
  now.picture = picture;
  viewer.draw();
}

// `pressed(place)` is called with the finding that is clicked on, `pointed(point)` with the point that attention is asked
// about.
export function showAnswerOn(picture, answer, pressed, pointed) {
  now = {...NOTHING, picture, answer};
  press = pressed;
  pointTo = pointed;
  if (answer.detections) now.masks = new Masks(answer.detections, answer.picture_width, answer.picture_height);
  if (answer.segmentation) now.values = bytesOf(answer.segmentation.label_map);
  if (answer.disparity) now.values = disparitiesOf(answer.disparity);
  viewer.show({width: picture.full.width, height: picture.full.height});
  refresh();
}

// The filter, or what is chosen, has changed.
export function refresh() {
  if (!now.answer) return;
  now.over = now.masks ? now.masks.tint(seen()) : layerOf(now.answer, now.chosen);
  if (now.rival?.masks) now.rival.over = now.rival.masks.tint(visibleOf(now.rival.answer));
  now.map = null;
  liftMaps();
  viewer.draw();
}

// Draws the other answer right of the swipe's line. Null ends the comparison.
export function showRival(answer) {
  const masks = answer?.detections ? new Masks(answer.detections, answer.picture_width, answer.picture_height) : null;
  now.rival = answer && {answer, masks, over: masks ? null : layerOf(answer, null)};
  if (now.answer) refresh();
}

export function swipeTo(share) {
  swipe = share;
  viewer.draw();
}

// Marks the point that attention is asked about; null for none.
export function markPoint(point) {
  now.point = point;
  pointAt(point);
  viewer.draw();
}

export function chooseFinding(place) {
  now.chosen = place;
  now.hovered = null;
  refresh();
}

// The picture with all that is drawn over it, as PNG; small ones are enlarged, so that labels can be read.
export function overlayPng() {
  const {width, height} = now.picture.full, scale = Math.max(1, Math.ceil(800 / Math.max(width, height)));
  const canvas = new OffscreenCanvas(scale * width, scale * height);
  paint(canvas.getContext("2d"), {scale, x: 0, y: 0, width: canvas.width, height: canvas.height});
  return canvas.convertToBlob({type: "image/png"});
}

export const canCutOut = () => Boolean(now.masks) && now.chosen !== null;

// The box of the chosen detection, without what is not of its mask.
export function cutOutPng() {
  const {picture: {full}, answer, masks, chosen} = now, {box} = answer.detections.detections[chosen];
  const left = Math.max(0, Math.floor(box.x_min)), top = Math.max(0, Math.floor(box.y_min));
  const width = Math.max(1, Math.min(full.width, Math.ceil(box.x_max)) - left);
  const canvas = new OffscreenCanvas(width, Math.max(1, Math.min(full.height, Math.ceil(box.y_max)) - top));
  const context = canvas.getContext("2d");
  context.drawImage(full, -left, -top);
  if (masks.masks[chosen]) {
    context.globalCompositeOperation = "destination-in";
    context.imageSmoothingEnabled = false;
    context.drawImage(masks.tint([chosen]), -left, -top, masks.step * masks.width, masks.step * masks.height);
  }
  return canvas.convertToBlob({type: "image/png"});
}

// Shows the maps beside the picture; the one that is pressed lies over it, in place of the answer's own overlay.
export function offerMaps(answer, maps) {
  showMaps(answer.explanation, maps, (canvas) => {
    if (now.answer !== answer) return;
    now.map = canvas;
    viewer.draw();
  });
}

// A check box for each class that was found, and a bar for each twentieth of the scores.
export function offerFilter(answer) {
  const found = answer.detections?.detections ?? answer.actions?.actions ?? [], off = hiddenClasses();
  $("classes-field").hidden = found.length === 0;
  $("classes").replaceChildren(...namesOf(found).map(({index, name, count}) => {
    const label = document.createElement("label"), box = document.createElement("input");
    Object.assign(box, {type: "checkbox", value: index, checked: !off.has(index)});
    label.append(box, ` ${name} (${count})`);
    return label;
  }));
  const bins = new Array(20).fill(0);
  for (const {score} of found) ++bins[Math.min(19, Math.floor(20 * score))];
  const most = Math.max(1, ...bins);
  $("histogram").replaceChildren(...bins.map((count) => {
    const bar = document.createElement("i");
    bar.style.height = `${100 * count / most}%`;
    return bar;
  }));
}

export function listenToViewer() {
  for (const id of ["opacity", "show-boxes", "show-masks", "show-points", "show-labels"]) {
    $(id).addEventListener("input", () => viewer.draw());
  }
  const mark = (place) => {
    if (now.hovered === place) return;
    now.hovered = place;
    viewer.draw();
  };
  $("findings").addEventListener("pointerover", (event) => {
    const place = event.target.closest("button")?.dataset.place;
    mark(place === undefined ? null : Number(place));
  });
  $("findings").addEventListener("pointerleave", () => mark(null));
  $("zoom-fit").onclick = () => viewer.fit();
  $("zoom-real").onclick = () => viewer.real();
  $("zoom-in").onclick = () => viewer.zoom(1.5);
  $("zoom-out").onclick = () => viewer.zoom(1 / 1.5);
  $("full-screen").onclick = () => viewer.fullScreen();
}
