// Draws answers: masks, label maps and disparities over the picture, with boxes and names on top.

export const colourOf = (index, alpha = 1) => `hsl(${(Number(index) * 137.508 + 210) % 360} 85% 55% / ${alpha})`;

function rgbOf(index) {
  const hue = ((Number(index) * 137.508 + 210) % 360) / 60, c = 0.85 * 0.9, least = 0.55 - c / 2;
  const x = c * (1 - Math.abs(hue % 2 - 1));
  const rgb = [[c, x, 0], [x, c, 0], [0, c, x], [0, x, c], [x, 0, c], [c, 0, x]][Math.floor(hue)];
  return rgb.map((part) => Math.round(255 * (part + least)));
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
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

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

// A canvas whose pixels have the colours `colourAt(i)`, [r, g, b] or falsy for transparent.
function layer(width, height, colourAt) {
  const canvas = element("canvas", {width, height});
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  for (let i = 0; i < width * height; ++i) {
    const colour = colourAt(i);
    if (colour) image.data.set([...colour, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

function masksLayer(detections, chosen, width, height) {
  const owner = new Int32Array(width * height).fill(-1);
  // In reverse order, so that the best detection is on top.
  for (let n = detections.length - 1; n >= 0; --n) {
    const mask = detections[n].mask;
    if (!mask || (chosen !== null && chosen !== n)) continue;
    let at = 0, inside = false;
    for (const run of runsOf(mask.counts)) {
      if (inside) for (let i = at; i < at + run; ++i) owner[(i % height) * width + Math.floor(i / height)] = n;
      at += run;
      inside = !inside;
    }
  }
  const colours = detections.map((one) => rgbOf(one.class_index));
  return layer(width, height, (i) => owner[i] >= 0 && colours[owner[i]]);
}

function labelsLayer(segmentation, chosen) {
  const labels = bytesOf(segmentation.label_map), colours = new Map();
  segmentation.areas.forEach((area, n) => {
    const wanted = chosen === null ? area.label !== "background" : chosen === n;
    if (wanted) colours.set(Number(area.class_index), rgbOf(area.class_index));
  });
  return layer(segmentation.width, segmentation.height, (i) => colours.get(labels[i]));
}

function disparityLayer(disparity) {
  const bytes = bytesOf(disparity.map), values = new Float32Array(bytes.buffer);
  const span = disparity.max - disparity.min || 1;
  const colours = Array.from({length: 256}, (_, i) => turbo(i / 255));
  return layer(disparity.width, disparity.height,
               (i) => colours[Math.round(255 * Math.min(1, Math.max(0, (values[i] - disparity.min) / span)))]);
}

// The overlay of an answer. `chosen` is the index of the only finding to draw, or null for all.
export function layerOf(answer, chosen) {
  if (answer.detections) {
    return masksLayer(answer.detections.detections, chosen, answer.picture_width, answer.picture_height);
  }
  if (answer.segmentation) return labelsLayer(answer.segmentation, chosen);
  if (answer.disparity) return disparityLayer(answer.disparity);
  return null;
}

function drawBoxes(context, detections, width, chosen, unit) {
  context.font = `600 ${13 * unit}px system-ui, sans-serif`;
  context.textBaseline = "top";
  // In reverse order, so that the best detection is on top.
  for (let n = detections.length - 1; n >= 0; --n) {
    if (chosen !== null && chosen !== n) continue;
    const {box, class_index, label, score} = detections[n];
    context.strokeStyle = colourOf(class_index);
    context.lineWidth = 2 * unit;
    context.strokeRect(box.x_min, box.y_min, box.x_max - box.x_min, box.y_max - box.y_min);
    const text = `${label || class_index} ${(100 * score).toFixed(0)}%`;
    const wide = context.measureText(text).width + 8 * unit, high = 18 * unit;
    const x = Math.max(0, Math.min(box.x_min - unit, width - wide));
    const y = box.y_min >= high ? box.y_min - high : box.y_min;
    context.fillStyle = colourOf(class_index);
    context.fillRect(x, y, wide, high);
    const [r, g, b] = rgbOf(class_index);
    context.fillStyle = 0.299 * r + 0.587 * g + 0.114 * b > 120 ? "#000" : "#fff";
    context.fillText(text, x + 4 * unit, y + 3 * unit);
  }
}

// The canvas is larger than the picture, so that lines and names are sharp on small pictures too. `unit` is the number
// of picture pixels per screen pixel.
export function draw(context, picture, answer, over, opacity, chosen, unit) {
  const {picture_width: width, picture_height: height} = answer;
  const scale = context.canvas.width / width;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.globalAlpha = 1;
  context.imageSmoothingEnabled = true;
  context.drawImage(picture, 0, 0, width, height);
  if (over) {
    context.globalAlpha = opacity;
    context.imageSmoothingEnabled = false;
    context.drawImage(over, 0, 0, width, height);
    context.globalAlpha = 1;
  }
  if (answer.detections) drawBoxes(context, answer.detections.detections, width, chosen, unit);
}
