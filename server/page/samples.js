// The samples of the chosen model: files in its folder, which the daemon hands out.

import {element} from "./overlay.js";
import {isolated} from "./text.js";
import {ask} from "./token.js";

const $ = (id) => document.getElementById(id);
const THUMBNAIL = 72;
// Larger files are not fetched for a thumbnail.
const MAX_THUMBNAIL_BYTES = 2 ** 20;

let shown = null;
// Fetches the thumbnails that come into view.
let watcher = null;
// By button, what fetches its thumbnail.
let thumbnails = new Map();

const pathOf = (model, name) => `/v1/models/${encodeURIComponent(model)}/samples/${encodeURIComponent(name)}`;

async function fileOf(model, {name, type}) {
  const response = await ask(pathOf(model, name));
  if (!response.ok) throw new Error((await response.json()).error);
  return new File([await response.blob()], name, {type});
}

async function drawThumbnail(canvas, model, sample) {
  try {
    const picture = await createImageBitmap(await fileOf(model, sample), {resizeHeight: THUMBNAIL});
    [canvas.width, canvas.height] = [picture.width, picture.height];
    canvas.getContext("2d").drawImage(picture, 0, 0);
    canvas.hidden = false;
  } catch {
    // The browser cannot read it, or the file has changed; the name is enough.
    canvas.hidden = true;
  }
}

// Those that belong to one request: for stereo, left and right alternate.
function groupsOf(samples, task) {
  if (task !== "stereo") return samples.map((one) => [one]);
  const groups = [];
  for (let i = 0; i + 1 < samples.length; i += 2) groups.push([samples[i], samples[i + 1]]);
  return groups;
}

const isThumbnail = ({type, bytes}) => /^image\/(?!tiff)/.test(type) && bytes <= MAX_THUMBNAIL_BYTES;

function buttonOf(model, group, take, complain) {
  const canvas = element("canvas", {width: THUMBNAIL, height: THUMBNAIL, hidden: true});
  const button = element("button", {type: "button"}, canvas, element("span", {}, group.map(({name}) => isolated(name)).join(", ")));
  button.onclick = async () => {
    try {
      const files = await Promise.all(group.map((one) => fileOf(model, one)));
      if (shown === model) take(files);
    } catch (error) {
      complain(`The sample could not be fetched: ${error.message}`);
    }
  };
  if (isThumbnail(group[0])) {
    thumbnails.set(button, () => drawThumbnail(canvas, model, group[0]));
    watcher.observe(button);
  }
  return button;
}

// Lists the samples of `model`, or of none if it is null. `take(files)` is called with those that are pressed.
export async function showSamples(model, task, take, complain) {
  if (shown === model) return;
  shown = model;
  watcher?.disconnect();
  thumbnails = new Map();
  watcher = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      thumbnails.get(target)?.();
    }
  });
  $("samples-part").hidden = true;
  $("samples").replaceChildren();
  if (!model) return;
  let samples = [];
  try {
    const response = await ask(`/v1/models/${encodeURIComponent(model)}/samples`);
    if (response.ok) ({samples} = await response.json());
  } catch {
    // The daemon is gone; the page's head says so.
  }
  if (shown !== model) return;
  const groups = groupsOf(samples, task);
  $("samples").replaceChildren(...groups.map((group) => element("li", {}, buttonOf(model, group, take, complain))));
  $("samples-part").hidden = !groups.length;
}

// The list is asked for again when the model is chosen next.
export function forgetSamples() {
  shown = null;
}
