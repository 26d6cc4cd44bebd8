// What the viewer shows: a picture, and over it what an answer found, as far as the filter lets it through.

import {showMaps} from "./attention.js";
import {drawDetections} from "./boxes.js";
import {findingsOf, namesOf} from "./findings.js";
import {Masks} from "./masks.js";
import {bytesOf, disparitiesOf, layerOf, release} from "./overlay.js";
import {drawPicture} from "./picture.js";
import {Viewer} from "./viewer.js";

const $ = (id) => document.getElementById(id);
const NOTHING = {picture: null, answer: null, chosen: null, hovered: null, over: null, masks: null, values: null, map: null};
let now = {...NOTHING};
let press = () => {};

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

function paint(context, view) {
  const {picture, answer, over, masks, map} = now, opacity = Number($("opacity").value);
  if (!picture) return;
  drawPicture(context, picture, view);
  const {width, height} = masks && !map ? {width: masks.step * masks.width, height: masks.step * masks.height} : picture.full;
  const place = [view.x, view.y, view.scale * width, view.scale * height];
  const layer = map ?? over;
  if (layer && (map || !masks || $("show-masks").checked)) {
    context.globalAlpha = opacity;
    context.imageSmoothingEnabled = false;
    context.drawImage(layer, ...place);
    context.globalAlpha = 1;
  }
  if (!masks) return;
  const shown = {boxes: $("show-boxes").checked, masks: $("show-masks").checked && !map, labels: $("show-labels").checked};
  drawDetections(context, answer.detections.detections, masks, seen(), now.hovered, shown, view);
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

// The index of the point in a label map or a disparity map, which may be smaller than the picture.
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
    parts.push(Number.isNaN(value) ? "no disparity" : `${value.toFixed(2)} px of disparity`);
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
  paint, hover, step, press: (point) => {
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

// `pressed(place)` is called with the finding that is clicked on.
export function showAnswerOn(picture, answer, pressed) {
  now = {...NOTHING, picture, answer};
  press = pressed;
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
  now.map = null;
  release($("maps"));
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
  $("attention-part").hidden = !maps.length;
  $("attention-title").textContent = `Attention of ${answer.explanation?.layer}`;
  showMaps($("maps"), answer, maps, (place) => {
    if (now.answer !== answer) return;
    now.map = maps[place] ?? null;
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
  for (const id of ["opacity", "show-boxes", "show-masks", "show-labels"]) {
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
