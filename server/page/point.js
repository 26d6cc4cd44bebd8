// The point of the picture that attention is asked about.

import {keyOf} from "./models.js";

const $ = (id) => document.getElementById(id);
// {point, place, sent, model}: `point` is in the picture's pixels, `place` says where it lies in what the network sees, from 0
// to 1. Null for no point.
let asked = null;

// The list of models may have been fetched again meanwhile, so models are compared by what names them.
const isAbout = (model, sent) => asked !== null && keyOf(asked.model) === keyOf(model) && asked.sent[0] === sent[0];

// Shows the fields of the point, with which the keyboard chooses it. `shown` is the answer, with what it is about.
export function offerPoint(shown, isPossible) {
  $("point-field").hidden = !shown || !isPossible;
  if (!shown) return;
  [$("point-x").max, $("point-y").max] = [shown.answer.picture_width - 1, shown.answer.picture_height - 1];
}

// Returns whether the network sees the point; if it does not, the user is told.
export function choosePoint(point, {answer, sent, model}) {
  const seen = answer.explanation?.seen;
  if (!seen) return false;
  const place = {x: (point.x - seen.x) / seen.width, y: (point.y - seen.y) / seen.height};
  [$("point-x").value, $("point-y").value] = [point.x, point.y].map((at) => String(Math.floor(at)));
  if (Object.values(place).some((at) => !(at >= 0 && at <= 1))) {
    $("readout").textContent = "The network does not see this point: it looks at the middle of the picture only.";
    return false;
  }
  asked = {point, place, sent, model};
  return true;
}

// The place to ask the model about, or null.
export const positionFor = (model, sent) =>
  model.attention_by_position && $("attention").value && isAbout(model, sent) ? asked.place : null;

// The point to mark on the answer, or null. A point of another picture or model is forgotten.
export function pointOf({answer, sent, model}) {
  if (!answer.explanation || !isAbout(model, sent)) asked = null;
  return asked?.point ?? null;
}

// `pointed(point)` is called with a point that was typed.
export function listenToPoint(shown, pointed) {
  for (const id of ["point-x", "point-y"]) {
    $(id).onchange = () => {
      const answer = shown()?.answer, [x, y] = ["point-x", "point-y"].map((one) => Number($(one).value));
      if (answer && x >= 0 && y >= 0 && x < answer.picture_width && y < answer.picture_height) pointed({x: x + 0.5, y: y + 0.5});
    };
  }
}
