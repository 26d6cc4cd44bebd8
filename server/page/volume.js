// Shows a volume before and after restoration, and their difference, along the three axes and with the same greys.

import {bytesOf} from "./overlay.js";
import {planesOf} from "./tiff.js";

const $ = (id) => document.getElementById(id);
const READ = {
  UINT8: [1, (view, at) => view.getUint8(at)],
  UINT16: [2, (view, at) => view.getUint16(at, true)],
  FLOAT32: [4, (view, at) => view.getFloat32(at, true)],
};

// Returns one Float32Array per plane.
export function restoredPlanes({shape, voxels}) {
  const [bytes, read] = READ[shape.type], view = new DataView(bytesOf(voxels).buffer), size = shape.width * shape.height;
  return Array.from({length: shape.depth}, (_, plane) =>
    Float32Array.from({length: size}, (_, i) => read(view, (plane * size + i) * bytes)));
}

// The greys of values from `least` to `most`; those outside are black or white.
function greyOf(value, {least, most}) {
  const grey = Math.round(255 * Math.min(1, Math.max(0, (value - least) / (most - least || 1))));
  return [grey, grey, grey];
}

// Blue below zero, red above, white at zero.
function differenceOf(value, most) {
  const share = Math.min(1, Math.max(-1, value / (most || 1))), pale = Math.round(255 * (1 - Math.abs(share)));
  return share < 0 ? [pale, pale, 255] : [255, pale, pale];
}

function drawCut(canvas, width, height, valueAt, colour) {
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) image.data.set([...colour(valueAt(x, y)), 255], 4 * (y * width + x));
  }
  context.putImageData(image, 0, 0);
}

let shown = null;

const number = (id) => Number($(id).value);
const told = (value) => value === undefined ? "–" : String(Number(value.toPrecision(5)));

// The three cuts through the voxel that is chosen: across, from the front and from the side. A projection has one plane.
function cutsOf(planes, {width, height}, {x, y, z}) {
  const at = Math.min(z, planes.length - 1), depth = planes.length;
  return [
    ["", width, height, (u, v) => planes[at][v * width + u]],
    ["-y", width, depth, (u, v) => planes[v][y * width + u]],
    ["-x", height, depth, (u, v) => planes[v][u * width + x]],
  ];
}

const voxelNow = () => ({x: number("column"), y: number("row"), z: number("plane")});

function drawKind(kind, planes, colour, name) {
  const voxel = voxelNow(), titles = {"": `plane ${voxel.z + 1}`, "-y": `row ${voxel.y + 1}`, "-x": `column ${voxel.x + 1}`};
  const has = planes.length > 0;
  for (const [axis, width, height, valueAt] of has ? cutsOf(planes, shown.shape, voxel) : []) {
    drawCut($(`${kind}${axis}`), width, height, valueAt, colour);
    $(`${kind}${axis}`).ariaLabel = `${name}, ${titles[axis]}`;
  }
  $(`${kind}-part`).hidden = !has;
  for (const axis of ["-y", "-x"]) $(`${kind}${axis}-part`).hidden = planes.length < 2;
}

function readVoxel({x, y, z}) {
  const {before, after, difference, shape} = shown, i = y * shape.width + x;
  const parts = [`x ${x}, y ${y}, z ${z}`];
  if (before.length) parts.push(`sent ${told(before[z]?.[i])}`);
  parts.push(`answer ${told(after[Math.min(z, after.length - 1)]?.[i])}`);
  if (difference.length) parts.push(`difference ${told(difference[z]?.[i])}`);
  $("voxel").textContent = parts.join(" · ");
}

function drawPlanes() {
  const {before, after, difference, most, shape} = shown, voxel = voxelNow();
  const [level, window] = [number("level"), number("window")], range = {least: level - window / 2, most: level + window / 2};
  $("plane-shown").textContent = `${voxel.z + 1} of ${Math.max(before.length, shape.depth)}`;
  $("row-shown").textContent = `${voxel.y + 1} of ${shape.height}`;
  $("column-shown").textContent = `${voxel.x + 1} of ${shape.width}`;
  $("level-shown").textContent = told(level);
  $("window-shown").textContent = told(window);
  drawKind("before", before, (value) => greyOf(value, range), "The volume as it was sent");
  drawKind("after", after, (value) => greyOf(value, range), "The answer");
  drawKind("difference", difference, (value) => differenceOf(value, most), "The answer minus what was sent");
  $("difference-scale").hidden = !difference.length;
  $("difference-scale").textContent = `Difference: blue is ${told(-most)}, white 0, red ${told(most)}.`;
  readVoxel(voxel);
}

// The planes of the file that was sent and of its answer, and what the answer changed, if both have the same planes.
export async function volumeOf(file, restoration) {
  const {shape, min, max} = restoration;
  let before = [], why = "";
  try {
    before = await planesOf(await file.arrayBuffer(), shape.width, shape.height);
  } catch (error) {
    why = `The volume that was sent cannot be shown here: ${error.message}.`;
  }
  const after = restoredPlanes(restoration);
  const difference = before.length === after.length
    ? after.map((plane, z) => plane.map((value, i) => value - before[z][i])) : [];
  const most = difference.reduce((all, plane) => plane.reduce((one, value) => Math.max(one, Math.abs(value)), all), 0);
  return {before, after, difference, most, shape, range: {min, max}, why};
}

export function showVolume(volume) {
  shown = volume;
  const {before, shape, why, range: {min, max}} = volume;
  $("before-why").hidden = !why;
  $("before-why").textContent = why;
  for (const [id, count] of [["plane", Math.max(before.length, shape.depth)], ["row", shape.height], ["column", shape.width]]) {
    $(id).max = String(count - 1);
    $(id).value = String(Math.floor((count - 1) / 2));
    $(id).disabled = count === 1;
  }
  const span = max - min || 1;
  Object.assign($("level"), {min: String(min), max: String(min + span), value: String(min + span / 2)});
  Object.assign($("window"), {min: String(span / 100), max: String(2 * span), value: String(span)});
  $("volume").hidden = false;
  drawPlanes();
}

// The voxel under the pointer, on the canvas of an axis.
function voxelAt(canvas, axis, event) {
  const box = canvas.getBoundingClientRect(), scale = Math.min(box.width / canvas.width, box.height / canvas.height);
  // The canvas keeps its shape within its box.
  const u = Math.floor((event.clientX - box.left - (box.width - scale * canvas.width) / 2) / scale);
  const v = Math.floor((event.clientY - box.top - (box.height - scale * canvas.height) / 2) / scale);
  if (u < 0 || v < 0 || u >= canvas.width || v >= canvas.height) return null;
  const {x, y, z} = voxelNow();
  return {"": {x: u, y: v, z}, "-y": {x: u, y, z: v}, "-x": {x, y: u, z: v}}[axis];
}

export function listenToPlanes() {
  for (const id of ["plane", "row", "column", "level", "window"]) $(id).addEventListener("input", drawPlanes);
  for (const kind of ["before", "after", "difference"]) {
    for (const axis of ["", "-y", "-x"]) {
      const canvas = $(`${kind}${axis}`);
      canvas.addEventListener("pointermove", (event) => {
        const voxel = voxelAt(canvas, axis, event);
        if (voxel) readVoxel(voxel);
      });
      canvas.addEventListener("pointerleave", () => readVoxel(voxelNow()));
      canvas.addEventListener("click", (event) => {
        const voxel = voxelAt(canvas, axis, event);
        if (!voxel) return;
        [$("column").value, $("row").value, $("plane").value] = [voxel.x, voxel.y, voxel.z].map(String);
        drawPlanes();
      });
    }
  }
}
