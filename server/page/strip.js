// Several pictures as a strip: each is answered, a few at a time, and shown when it is pressed.

import {element, letChoose, release} from "./overlay.js";
import {isolated} from "./text.js";

// Requests at once; the daemon has other clients too.
const AT_ONCE = 2;
export const MAX_FILES = 100;
const THUMBNAIL = 96;

let running = null;
let shown = [];

const list = () => document.getElementById("strip");

async function drawThumbnail(canvas, file) {
  try {
    const picture = await createImageBitmap(file, {resizeHeight: THUMBNAIL});
    [canvas.width, canvas.height] = [picture.width, picture.height];
    canvas.getContext("2d").drawImage(picture, 0, 0);
  } catch {
    // The browser cannot read it; the name is enough.
    canvas.hidden = true;
  }
}

export function clearStrip() {
  running?.abort();
  running = null;
  shown = [];
  list().hidden = true;
  list().replaceChildren();
}

// Asks for all files of the strip again, because the model or an option has changed. `answer(file, signal)` returns a
// function that tells, in a few words, what was found; the filter changes what it says.
export async function answerStrip(answer) {
  running?.abort();
  const mine = running = new AbortController(), rest = [...shown];
  for (const one of shown) {
    one.tell = null;
    one.text.textContent = "waiting";
  }
  const work = async () => {
    for (let one = rest.shift(); one && mine === running; one = rest.shift()) {
      one.text.textContent = "asked";
      try {
        one.tell = await answer(one.file, mine.signal);
        one.text.textContent = one.tell();
        one.text.classList.remove("bad");
      } catch (error) {
        if (error.name === "AbortError") return;
        one.text.textContent = error.message;
        one.text.classList.add("bad");
      }
    }
  };
  await Promise.all(Array.from({length: AT_ONCE}, work));
}

// The filter has changed.
export function tellStripAgain() {
  for (const {text, tell} of shown) {
    if (tell) text.textContent = tell();
  }
}

// `pick(file)` is called with the file that is pressed.
export function showStrip(files, pick) {
  clearStrip();
  shown = files.slice(0, MAX_FILES).map((file) => ({file, text: element("span", {className: "where"}, "waiting"), tell: null}));
  list().replaceChildren(...shown.map(({file, text}, place) => {
    const canvas = element("canvas", {width: THUMBNAIL, height: THUMBNAIL});
    const button = element("button", {}, canvas, element("span", {}, isolated(file.name)), text);
    letChoose(list(), button, place, () => {
      // The file that is shown stays pressed.
      release(list());
      button.ariaPressed = "true";
      pick(file);
    });
    button.ariaPressed = String(place === 0);
    drawThumbnail(canvas, file);
    return element("li", {}, button);
  }));
  list().hidden = false;
}
