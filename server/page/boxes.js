// Draws detections in the screen's pixels: outlines of masks, boxes and keypoints, and above all of them the labels.

import {VISIBLE_FROM, colourOf, ordinalsOf, rgbOf} from "./overlay.js";
import {isolated} from "./text.js";

const HALO = "rgb(0 0 0 / 75%)", FONT = 13, HIGH = 18, PAD = 4;

// A dark line below a bright one is seen on any ground.
function strokeTwice(context, colour, width, stroke) {
  for (const [style, wide] of [[HALO, width + 2], [colour, width]]) {
    context.strokeStyle = style;
    context.lineWidth = wide;
    stroke();
  }
}

const overlap = (a, b) => Math.max(0, Math.min(a.x + a.wide, b.x + b.wide) - Math.max(a.x, b.x)) *
  Math.max(0, Math.min(a.y, b.y) + HIGH - Math.max(a.y, b.y));

// Places where a label may stand: at its box's corners, then further and further above and below.
function* candidates({left, top, right, bottom}, wide, screen) {
  for (const x of [left, right - wide]) yield* [[x, top - HIGH], [x, top], [x, bottom], [x, bottom - HIGH]];
  for (let away = HIGH; away < screen.height; away += HIGH + 1) {
    for (const x of [left, right - wide, left - wide, right]) yield* [[x, top - HIGH - away], [x, bottom + away]];
  }
}

// Returns [{x, y, wide, text, n}]: labels that do not overlap, as far as there is room on the screen. Labels of `boxes`
// that come first, which are the best, are placed first. `boxes` are {left, top, right, bottom, text, wide, n}.
export function placeLabels(boxes, screen) {
  const placed = [];
  for (const box of boxes) {
    let best = null, least = Infinity;
    for (const [x, y] of candidates(box, box.wide, screen)) {
      const label = {
        x: Math.max(0, Math.min(x, screen.width - box.wide)), y: Math.max(0, Math.min(y, screen.height - HIGH)),
        wide: box.wide, text: box.text, n: box.n,
      };
      const hidden = placed.reduce((sum, other) => sum + overlap(label, other), 0);
      if (hidden < least) [best, least] = [label, hidden];
      if (least === 0) break;
    }
    placed.push(best);
  }
  return placed;
}

// A dot for each keypoint; a ring for those that are rather not visible.
function drawPoints(context, keypoints, colour, radius, view) {
  for (const {x, y, score} of keypoints) {
    const ring = new Path2D();
    ring.arc(view.x + view.scale * x, view.y + view.scale * y, radius, 0, 2 * Math.PI);
    strokeTwice(context, colour, 1.5, () => context.stroke(ring));
    if (score < VISIBLE_FROM) continue;
    context.fillStyle = colour;
    context.fill(ring);
  }
}

// `view` turns the picture's pixels into the screen's: {scale, x, y, width, height}. `visible` are indices of detections,
// `shown` tells whether boxes, masks, points and labels are wanted.
export function drawDetections(context, detections, masks, visible, marked, shown, view) {
  const ordinals = ordinalsOf(detections), colour = (n) => colourOf(detections[n].class_index, ordinals[n]);
  const order = [...visible].reverse();
  if (shown.masks) {
    for (const n of order) {
      if (!masks.outlines[n]) continue;
      // Lines are as wide in the screen's pixels as they are without a scale.
      const scale = view.scale * masks.step;
      context.save();
      context.translate(view.x, view.y);
      context.scale(scale, scale);
      strokeTwice(context, colour(n), (n === marked ? 3 : 1.5), () => {
        context.lineWidth /= scale;
        context.stroke(masks.outlines[n]);
      });
      context.restore();
    }
  }
  const boxes = visible.map((n) => {
    const {box, label, class_index, score} = detections[n];
    const [left, right] = [box.x_min, box.x_max].map((x) => view.x + view.scale * x);
    const [top, bottom] = [box.y_min, box.y_max].map((y) => view.y + view.scale * y);
    return {n, left, top, right, bottom, text: `${isolated(label) || class_index} ${(100 * score).toFixed(0)}%`};
  });
  if (shown.boxes) {
    for (const {n, left, top, right, bottom} of [...boxes].reverse()) {
      strokeTwice(context, colour(n), n === marked ? 4 : 2,
                  () => context.strokeRect(left, top, right - left, bottom - top));
    }
  }
  for (const n of shown.points ? order : []) drawPoints(context, detections[n].keypoints ?? [], colour(n), n === marked ? 6 : 4, view);
  if (!shown.labels) return;
  context.font = `600 ${FONT}px system-ui, sans-serif`;
  context.textBaseline = "top";
  const onScreen = boxes.filter(({left, top, right, bottom}) =>
    right > 0 && bottom > 0 && left < view.width && top < view.height);
  for (const box of onScreen) box.wide = context.measureText(box.text).width + 2 * PAD;
  for (const {x, y, wide, text, n} of placeLabels(onScreen, view)) {
    const box = onScreen.find((one) => one.n === n), [r, g, b] = rgbOf(detections[n].class_index, ordinals[n]);
    const nearX = Math.max(box.left, Math.min(x + wide / 2, box.right));
    const nearY = Math.max(box.top, Math.min(y + HIGH / 2, box.bottom));
    // A label that was moved away from its box is tied to it.
    if (y > box.bottom + 1 || y + HIGH < box.top - 1 || x > box.right + 1 || x + wide < box.left - 1) {
      strokeTwice(context, colour(n), 1, () => {
        context.beginPath();
        context.moveTo(x + wide / 2, y + HIGH / 2);
        context.lineTo(nearX, nearY);
        context.stroke();
      });
    }
    context.fillStyle = HALO;
    context.fillRect(x - 1, y - 1, wide + 2, HIGH + 2);
    context.fillStyle = colour(n);
    context.fillRect(x, y, wide, HIGH);
    context.fillStyle = 0.299 * r + 0.587 * g + 0.114 * b > 120 ? "#000" : "#fff";
    context.fillText(text, x + PAD, y + 3);
  }
}
