// What overlays are made of: colours, elements, label maps and disparities as layers over the picture.

// Objects of one class have shades of its colour, so that two that touch can be told apart: further hues and lightnesses
// for the second, third, ... object. The first has the class's own.
const SHADES = [[0, 55], [24, 70], [-24, 42], [40, 48], [-40, 66]];
const hslOf = (index, nth) => {
  const [turn, lightness] = SHADES[nth % SHADES.length];
  return [((Number(index) * 137.508 + 210 + turn) % 360 + 360) % 360, lightness];
};

export function colourOf(index, nth = 0) {
  const [hue, lightness] = hslOf(index, nth);
  return `hsl(${hue} 85% ${lightness}%)`;
}

export function rgbOf(index, nth = 0) {
  const [degrees, percent] = hslOf(index, nth), hue = degrees / 60, lightness = percent / 100;
  const c = 0.85 * (1 - Math.abs(2 * lightness - 1)), least = lightness - c / 2;
  const x = c * (1 - Math.abs(hue % 2 - 1));
  const rgb = [[c, x, 0], [x, c, 0], [0, c, x], [0, x, c], [x, 0, c], [c, 0, x]][Math.floor(hue)];
  return rgb.map((part) => Math.round(255 * (part + least)));
}

// Least score of a keypoint that counts as visible.
export const VISIBLE_FROM = 0.5;

// For each detection, how many better ones of its class there are.
export function ordinalsOf(detections) {
  const seen = new Map();
  return detections.map(({class_index}) => {
    const nth = seen.get(class_index) ?? 0;
    seen.set(class_index, nth + 1);
    return nth;
  });
}

export function element(name, attributes, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

export function release(list) {
  for (const button of list.querySelectorAll("button")) button.ariaPressed = "false";
}

// At most one button of a list is pressed. Calls `choose(place)` when it is pressed and choose(null) when it is
// released.
export function letChoose(list, button, place, choose) {
  button.type = "button";
  button.ariaPressed = "false";
  button.onclick = () => {
    const pressed = button.ariaPressed !== "true";
    release(list);
    button.ariaPressed = String(pressed);
    choose(pressed ? place : null);
  };
}

export function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// Google's Turbo colour map in its polynomial approximation.
export function turbo(x) {
  const powers = [1, x, x ** 2, x ** 3, x ** 4, x ** 5];
  const sum = (factors) => factors.reduce((all, factor, i) => all + factor * powers[i], 0);
  return [
    sum([0.13572138, 4.6153926, -42.66032258, 132.13108234, -152.94239396, 59.28637943]),
    sum([0.09140261, 2.19418839, 4.84296658, -14.18503333, 4.27729857, 2.82956604]),
    sum([0.1066733, 12.64194608, -60.58204836, 110.36276771, -89.90310912, 27.34824973]),
  ].map((part) => Math.round(255 * Math.min(1, Math.max(0, part))));
}

// Fills the canvas, which is 256 pixels wide, with the map's colours.
export function fillScale(canvas) {
  const context = canvas.getContext("2d"), image = context.createImageData(256, 1);
  for (let i = 0; i < 256; ++i) image.data.set([...turbo(i / 255), 255], 4 * i);
  context.putImageData(image, 0, 0);
}

// As one number of a canvas's image data, opaque.
/** @type {(rgb: number[]) => number} */
export const packed = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;

// A canvas whose pixels have the colours `colourAt(i)`, as packed() or 0 for transparent.
export function layer(width, height, colourAt) {
  const canvas = element("canvas", {width, height});
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; ++i) pixels[i] = colourAt(i);
  context.putImageData(image, 0, 0);
  return canvas;
}

function labelsLayer(segmentation, chosen) {
  const labels = bytesOf(segmentation.label_map), colours = new Uint32Array(256);
  segmentation.areas.forEach((area, n) => {
    const wanted = chosen === null ? area.label !== "background" : chosen === n;
    if (wanted) colours[Number(area.class_index)] = packed(rgbOf(area.class_index));
  });
  return layer(segmentation.width, segmentation.height, (i) => colours[labels[i]]);
}

export const disparitiesOf = (disparity) => new Float32Array(bytesOf(disparity.map).buffer);

function disparityLayer(disparity) {
  const values = disparitiesOf(disparity), span = disparity.max - disparity.min || 1;
  const colours = Uint32Array.from({length: 256}, (_, i) => packed(turbo(i / 255)));
  return layer(disparity.width, disparity.height,
               (i) => colours[Math.round(255 * Math.min(1, Math.max(0, (values[i] - disparity.min) / span)))]);
}

// The overlay of an answer other than detections. `chosen` is the index of the only finding to draw, or null for all.
export function layerOf(answer, chosen) {
  if (answer.segmentation) return labelsLayer(answer.segmentation, chosen);
  if (answer.disparity) return disparityLayer(answer.disparity);
  return null;
}
