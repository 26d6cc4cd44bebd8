// The masks of detections: decoded, tinted, outlined, and asked for what lies under the cursor.

import {element, ordinalsOf, packed, rgbOf} from "./overlay.js";

// Masks of larger pictures are read at every second, third, ... pixel, so that the page is not held up.
const MAX_PIXELS = 2 ** 21;

// Decodes COCO's compressed run lengths: runs of zeros and ones in column-major order, beginning with zeros. From the
// fourth run on, they are stored as the difference to the run two before.
export function runsOf(counts) {
  const runs = [];
  let number = 0, shift = 0;
  for (let i = 0; i < counts.length; ++i) {
    const digit = counts.charCodeAt(i) - 48;
    number |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    if (digit & 16 && shift < 32) number |= -1 << shift;
    runs.push(number + (runs.length > 2 ? runs[runs.length - 2] : 0));
    number = shift = 0;
  }
  return runs;
}

// The mask's bounding box in steps, and one byte for each of its pixels.
function maskOf({counts}, height, step) {
  const runs = runsOf(counts);
  let left = Infinity, right = -1, top = height, bottom = -1, at = 0;
  runs.forEach((run, i) => {
    if (i % 2 && run > 0) {
      const first = Math.floor(at / height), last = Math.floor((at + run - 1) / height);
      left = Math.min(left, first);
      right = Math.max(right, last);
      top = Math.min(top, first === last ? at % height : 0);
      bottom = Math.max(bottom, first === last ? (at + run - 1) % height : height - 1);
    }
    at += run;
  });
  if (right < 0) return null;
  [left, top, right, bottom] = [left, top, right, bottom].map((edge) => Math.floor(edge / step));
  const width = right - left + 1, pixels = new Uint8Array(width * (bottom - top + 1));
  at = 0;
  runs.forEach((run, i) => {
    for (let from = at; i % 2 && from < at + run;) {
      const x = Math.floor(from / height), y = from % height, end = Math.min(height, y + at + run - from);
      if (x % step === 0) {
        for (let row = Math.ceil(y / step); row * step < end; ++row) pixels[(row - top) * width + x / step - left] = 1;
      }
      from += end - y;
    }
    at += run;
  });
  return {left, top, width, height: bottom - top + 1, pixels};
}

// The borders between the mask's pixels and all others, in steps; collinear ones are joined.
function outlineOf({left, top, width, height, pixels}) {
  const path = new Path2D(), inside = (x, y) => x >= 0 && y >= 0 && x < width && y < height && pixels[y * width + x] === 1;
  const lines = (across, down, isBorder, draw) => {
    for (let v = 0; v <= down; ++v) {
      for (let u = 0, from = -1; u <= across; ++u) {
        const border = u < across && isBorder(u, v);
        if (border && from < 0) from = u;
        if (!border && from >= 0) {
          draw(from, u, v);
          from = -1;
        }
      }
    }
  };
  lines(width, height, (x, y) => inside(x, y) !== inside(x, y - 1), (from, to, y) => {
    path.moveTo(left + from, top + y);
    path.lineTo(left + to, top + y);
  });
  lines(height, width, (y, x) => inside(x, y) !== inside(x - 1, y), (from, to, x) => {
    path.moveTo(left + x, top + from);
    path.lineTo(left + x, top + to);
  });
  return path;
}

// The masks of an answer's detections. `step` is the number of the picture's pixels to one of theirs.
export class Masks {
  width = 0;
  height = 0;

  constructor({detections}, width, height) {
    this.step = Math.ceil(Math.sqrt(width * height / MAX_PIXELS));
    [this.width, this.height] = [Math.ceil(width / this.step), Math.ceil(height / this.step)];
    this.masks = detections.map(({mask}) => mask ? maskOf(mask, height, this.step) : null);
    this.outlines = this.masks.map((mask) => mask && outlineOf(mask));
    const ordinals = ordinalsOf(detections);
    this.colours = detections.map((one, n) => packed(rgbOf(one.class_index, ordinals[n])));
  }

  contains(n, x, y) {
    const mask = this.masks[n];
    if (!mask) return false;
    const column = Math.floor(x / this.step) - mask.left, row = Math.floor(y / this.step) - mask.top;
    return column >= 0 && row >= 0 && column < mask.width && row < mask.height &&
      mask.pixels[row * mask.width + column] === 1;
  }

  // The masks in `visible`, which are indices; the best detection, which comes first, is on top.
  tint(visible) {
    const canvas = element("canvas", {width: this.width, height: this.height}), context = canvas.getContext("2d");
    const image = context.createImageData(this.width, this.height), all = new Uint32Array(image.data.buffer);
    for (const n of [...visible].reverse()) {
      const mask = this.masks[n];
      for (let y = 0; mask && y < mask.height; ++y) {
        const row = (mask.top + y) * this.width + mask.left;
        for (let x = 0; x < mask.width; ++x) if (mask.pixels[y * mask.width + x]) all[row + x] = this.colours[n];
      }
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }
}
