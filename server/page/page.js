// The page's main module: handles the user's choices, sends the request, shows the answer.

import {mapsOf, showMaps} from "./attention.js";
import {draw, layerOf, release, turbo} from "./overlay.js";
import {chooseAction, listenToClip, showClip} from "./clip.js";
import {showFindings, showTimings, summaryOf} from "./findings.js";
import {watch} from "./load.js";
import {requestOf} from "./request.js";
import {ask as send, takeToken} from "./token.js";
import {listenToPlanes, showVolume, volumeOf} from "./volume.js";

const $ = (id) => document.getElementById(id);
const canvas = $("canvas"), context = canvas.getContext("2d");
// Approximate width or height in canvas pixels to which smaller pictures are enlarged.
const SHARP = 1600;
// For each task, the name of its input and the accepted file types.
const SENT = {
  classification: ["Picture", "image/*"],
  detection: ["Picture", "image/*"],
  segmentation: ["Picture", "image/*"],
  stereo: ["Left picture", "image/*"],
  actions: ["Video, or its frames", "video/*,image/*"],
  restoration: ["Volume (TIFF)", ".tif,.tiff,image/tiff"],
};
const TASKS = Object.keys(SENT);

let models = [];
let files = [];
let shown = {picture: null, answer: null, over: null, chosen: null};
let running = null;

const model = () => models.find((one) => one.name === $("model").value);
// The files of the request; null stands for a missing one.
function wanted() {
  const task = model()?.task;
  if (task === "stereo") return [files[0] ?? null, files[1] ?? null];
  return task === "actions" && files[0]?.type.startsWith("image/") ? files : [files[0] ?? null];
}

function redraw() {
  if (!shown.answer) return;
  const place = canvas.getBoundingClientRect();
  const fits = Math.min(place.width / shown.answer.picture_width, place.height / shown.answer.picture_height);
  const unit = 1 / (fits || 1);
  draw(context, shown.picture, shown.answer, shown.over, Number($("opacity").value), shown.chosen, unit);
}

function complain(text) {
  $("problem").hidden = !text;
  $("problem").textContent = text;
}

async function listModels() {
  const response = await send("/v1/models");
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  // Requests name no version, so they go to the default one.
  models = answer.models.filter((one) => one.state === "READY");
  const before = $("model").value;
  $("model").replaceChildren(...[...new Map(models.map((one) => [one.name, one])).values()].map((one) => {
    const option = new Option(`${one.name} (${one.task || "ensemble"})`, one.name);
    option.disabled = !TASKS.includes(one.task);
    return option;
  }));
  const usable = [...$("model").options].filter((option) => !option.disabled);
  const again = usable.find((option) => option.value === before) ?? usable[0];
  if (again) again.selected = true;
  chooseModel();
}

function chooseModel() {
  const chosen = model(), stereo = chosen?.task === "stereo";
  $("slot-1").hidden = !stereo;
  const [name, accept] = SENT[chosen?.task] ?? SENT.classification;
  $("slot-0").querySelector(".slot-name").textContent = name;
  $("slot-0").querySelector("input").accept = accept;
  for (const field of document.querySelectorAll("[data-tasks]")) {
    field.hidden = !chosen || !field.dataset.tasks.split(" ").includes(chosen.task);
  }
  const layers = chosen?.attention_layers ?? [], before = $("attention").value;
  $("attention").replaceChildren(new Option("not shown", ""), ...layers.map((name) => new Option(name, name)));
  if (layers.includes(before)) $("attention").value = before;
  $("attention-field").hidden = !layers.length;
  const others = models.length && models.every((one) => !TASKS.includes(one.task));
  $("about").textContent = chosen
    ? `${chosen.architecture}${chosen.labels.length ? `, ${chosen.labels.length} classes` : ""}, ` +
      `${chosen.input_width}×${chosen.input_height}, batches of up to ${chosen.max_batch_size}` +
      (chosen.task === "restoration" ? ". For volumes larger than a message, use the command: saccade restore" : "")
    : others ? "The models that are ready take tensors, which this page does not support; see docs/api.md."
      : "No model is ready yet.";
}

// Browsers support fewer formats than the daemon. If the picture cannot be decoded, the answer is drawn on grey.
async function pictureOf(file, answer) {
  try {
    return await createImageBitmap(file);
  } catch {
    const blank = new OffscreenCanvas(answer.picture_width, answer.picture_height), ground = blank.getContext("2d");
    ground.fillStyle = "#888";
    ground.fillRect(0, 0, blank.width, blank.height);
    return blank;
  }
}

function showOnPicture(picture, answer) {
  shown = {picture, answer, over: layerOf(answer, null), chosen: null};
  const enlarged = Math.max(1, Math.floor(SHARP / Math.max(answer.picture_width, answer.picture_height)));
  [canvas.width, canvas.height] = [enlarged * answer.picture_width, enlarged * answer.picture_height];
  canvas.ariaLabel = `The picture with its answer: ${summaryOf(answer)}`;
  redraw();
}

// Shows the finding that was chosen in the list or on the timeline.
async function choose(sent, answer, place) {
  if (!answer.actions) {
    shown.chosen = place;
    shown.over = layerOf(answer, place);
    release($("maps"));
    redraw();
    return;
  }
  chooseAction(answer.actions, place);
  // If the clip consists of frames, show the first frame of the action.
  if (!canvas.hidden && place !== null) {
    const first = Math.min(sent.length - 1, Math.floor(answer.actions.actions[place].start_frame));
    const picture = await pictureOf(sent[first], answer);
    if (shown.answer === answer) showOnPicture(picture, answer);
  }
}

// Draws the map over the picture, in place of the answer's own overlay.
function chooseMap(map, answer) {
  if (shown.answer !== answer) return;
  shown.over = map ?? layerOf(answer, shown.chosen);
  redraw();
}

// At most one of `picture` and `volume` is set; a video is shown by its own element.
function showAnswer(sent, picture, volume, maps, answer, roundTrip) {
  canvas.hidden = !picture;
  shown = {picture: null, answer: null, over: null, chosen: null};
  $("clip").hidden = $("volume").hidden = true;
  $("summary").textContent = summaryOf(answer);
  if (picture) showOnPicture(picture, answer);
  const press = (place) => $("findings").querySelectorAll("button")[place].click();
  if (answer.actions) showClip(sent, answer.actions, press);
  else $("video").pause();
  if (volume) showVolume(volume);
  showFindings($("findings"), answer, (place) => choose(sent, answer, place));
  $("attention-part").hidden = !maps.length;
  $("attention-title").textContent = `Attention of ${answer.explanation?.layer}`;
  showMaps($("maps"), answer, maps, (place) => chooseMap(maps[place], answer));
  showTimings($("stages"), $("timings"), answer.timings, roundTrip);
  $("scale").hidden = !answer.disparity;
  if (answer.disparity) {
    $("scale-least").textContent = `${answer.disparity.min.toFixed(1)} px`;
    $("scale-most").textContent = `${answer.disparity.max.toFixed(1)} px`;
  }
}

async function ask() {
  const chosen = model(), sent = wanted();
  $("send").disabled = !chosen || sent.includes(null);
  running?.abort();
  if ($("send").disabled) return;
  const mine = running = new AbortController();
  canvas.classList.add("waiting");
  complain("");
  try {
    const {path, type, body} = await requestOf(chosen, sent);
    const started = performance.now();
    const response = await send(path, {method: "POST", headers: {"Content-Type": type}, body, signal: mine.signal});
    const answer = await response.json();
    const roundTrip = performance.now() - started;
    if (!response.ok) throw new Error(answer.error);
    const drawn = !answer.restoration && !(answer.actions && !sent[0].type.startsWith("image/"));
    const picture = drawn ? await pictureOf(sent[0], answer) : null;
    const volume = answer.restoration ? await volumeOf(sent[0], answer.restoration) : null;
    const maps = await mapsOf(answer);
    if (mine === running) showAnswer(sent, picture, volume, maps, answer, roundTrip);
  } catch (error) {
    if (mine === running && error.name !== "AbortError") complain(error.message);
  }
  if (mine === running) canvas.classList.remove("waiting");
}

function take(given, slot) {
  const sorted = [...given].sort((a, b) => a.name.localeCompare(b.name, undefined, {numeric: true}));
  if (!sorted.length) return;
  const task = model()?.task;
  // Several files are frames sorted by name, or the left and right picture of a pair.
  if (task === "actions") files = sorted[0].type.startsWith("image/") ? sorted : sorted.slice(0, 1);
  else if (task === "stereo" && sorted.length > 1) files = sorted.slice(0, 2);
  else files[slot] = sorted[0];
  const names = wanted().map((file) => file?.name);
  names.slice(0, 2).forEach((name, i) => {
    if (name) $(`slot-${i}`).querySelector(".slot-file").textContent = name;
  });
  if (names.length > 1 && task === "actions") {
    $("slot-0").querySelector(".slot-file").textContent = `${names.length} frames, ${names[0]} to ${names.at(-1)}`;
  }
  ask();
}

function soon(action, wait) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, wait);
  };
}

function listen() {
  [0, 1].forEach((slot) => {
    const place = $(`slot-${slot}`), input = place.querySelector("input");
    input.multiple = true;
    input.onchange = () => take(input.files, slot);
    place.ondragover = (event) => {
      event.preventDefault();
      place.classList.add("over");
    };
    place.ondragleave = () => place.classList.remove("over");
    place.ondrop = (event) => {
      event.preventDefault();
      place.classList.remove("over");
      take(event.dataTransfer.files, slot);
    };
  });
  // Without this, a file dropped elsewhere on the page would replace the page.
  document.ondragover = document.ondrop = (event) => event.preventDefault();
  $("model").onchange = () => {
    chooseModel();
    ask();
  };
  $("attention").onchange = ask;
  $("form").onsubmit = (event) => {
    event.preventDefault();
    ask();
  };
  for (const [id, text] of [["score", (v) => v.toFixed(2)], ["mask", (v) => v.toFixed(2)],
                            ["opacity", (v) => `${(100 * v).toFixed(0)}%`]]) {
    const show = () => $(`${id}-shown`).textContent = text(Number($(id).value));
    show();
    $(id).addEventListener("input", show);
  }
  $("opacity").addEventListener("input", redraw);
  const askSoon = soon(ask, 150);
  for (const id of ["score", "mask", "top"]) $(id).addEventListener("input", askSoon);
  addEventListener("resize", soon(redraw, 100));
}

function colourScale() {
  const bar = $("scale-bar").getContext("2d"), image = bar.createImageData(256, 1);
  for (let i = 0; i < 256; ++i) image.data.set([...turbo(i / 255), 255], 4 * i);
  bar.putImageData(image, 0, 0);
}

listen();
listenToClip();
listenToPlanes();
colourScale();
let listed = null;
takeToken(() => complain(""));
watch($("models"), $("held"), (ready, refused) => {
  const there = ready !== null;
  const missing = refused ? `${location.host} requires a token` : `${location.host} does not answer; trying again`;
  $("daemon").textContent = there ? `connected to ${location.host}` : missing;
  // The set of ready models may have changed.
  if (there && ready !== listed) listModels().catch((error) => complain(error.message));
  listed = ready;
});
