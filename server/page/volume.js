// Shows a volume before and after restoration, plane by plane, with the same range of greys.

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

function drawPlane(canvas, values, {width, height}, {min, max}) {
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d"), image = context.createImageData(width, height), span = max - min || 1;
  values.forEach((value, i) => {
    const grey = Math.round(255 * Math.min(1, Math.max(0, (value - min) / span)));
    image.data.set([grey, grey, grey, 255], 4 * i);
  });
  context.putImageData(image, 0, 0);
}

let shown = null;

function drawPlanes() {
  const plane = Number($("plane").value), {before, after, shape, range} = shown;
  const sent = Math.max(before.length, shape.depth);
  $("plane-shown").textContent = `${plane + 1} of ${sent}`;
  $("before-part").hidden = before.length === 0;
  if (before.length) drawPlane($("before"), before[plane], shape, range);
  // A projection has a single output plane.
  const other = Math.min(plane, after.length - 1);
  drawPlane($("after"), after[other], shape, range);
  $("before").ariaLabel = `Plane ${plane + 1} as it was sent`;
  $("after").ariaLabel = `Plane ${other + 1} of the answer`;
}

// The planes of the file that was sent and of its answer. Both use the answer's range of greys; values outside of it
// are black or white.
export async function volumeOf(file, restoration) {
  const {shape, min, max} = restoration;
  let before = [], why = "";
  try {
    before = await planesOf(await file.arrayBuffer(), shape.width, shape.height);
  } catch (error) {
    why = `The volume that was sent cannot be shown here: ${error.message}.`;
  }
  return {before, after: restoredPlanes(restoration), shape, range: {min, max}, why};
}

export function showVolume(volume) {
  shown = volume;
  const {before, shape, why} = volume;
  $("before-why").hidden = !why;
  $("before-why").textContent = why;
  const last = Math.max(before.length, shape.depth) - 1;
  $("plane").max = String(last);
  $("plane").value = String(Math.floor(last / 2));
  $("plane").disabled = last === 0;
  $("volume").hidden = false;
  drawPlanes();
}

export function listenToPlanes() {
  $("plane").addEventListener("input", drawPlanes);
}
