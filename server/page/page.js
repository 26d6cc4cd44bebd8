// The page's life: what is chosen, the request, the answer.

import {draw, layerOf, turbo} from "./overlay.js";
import {showFindings, showTimings, summaryOf} from "./findings.js";
import {watch} from "./load.js";
import {ask as send, takeToken} from "./token.js";

const $ = (id) => document.getElementById(id);
const canvas = $("canvas"), context = canvas.getContext("2d");
// Pixels of the canvas, about, for pictures that have fewer.
const SHARP = 1600;
const TASKS = ["classification", "detection", "segmentation", "stereo"];

let models = [];
let files = [null, null];
let shown = {picture: null, answer: null, over: null, chosen: null};
let running = null;

const model = () => models.find((one) => one.name === $("model").value);
const wanted = () => files.slice(0, model()?.task === "stereo" ? 2 : 1);

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
  // The page asks for the version that is served by default.
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
  $("slot-0").querySelector(".slot-name").textContent = stereo ? "Left picture" : "Picture";
  for (const field of document.querySelectorAll("[data-tasks]")) {
    field.hidden = !chosen || !field.dataset.tasks.split(" ").includes(chosen.task);
  }
  const others = models.length && models.every((one) => !TASKS.includes(one.task));
  $("about").textContent = chosen
    ? `${chosen.architecture}${chosen.labels.length ? `, ${chosen.labels.length} classes` : ""}, ` +
      `${chosen.input_width}×${chosen.input_height}, batches of up to ${chosen.max_batch_size}`
    : others ? "The models that are ready take clips, volumes or tensors: see the saccade command."
      : "No model is ready yet.";
}

function base64Of(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Error(`${file.name} cannot be read: ${reader.error?.message}`));
    reader.readAsDataURL(file);
  });
}

async function requestOf(chosen, sent) {
  const encoded = await Promise.all(sent.map(base64Of));
  const request = {model: chosen.name};
  if (chosen.task === "stereo") {
    request.stereo = {left: {encoded: encoded[0]}, right: {encoded: encoded[1]}};
    request.stereo_options = {format: "FLOAT"};
  } else {
    request.encoded = encoded[0];
  }
  if (chosen.task === "classification") request.classification = {top_k: Number($("top").value) || 5};
  if (chosen.task === "segmentation") request.segmentation = {format: "RAW"};
  if (chosen.task === "detection") {
    request.detection = {score_threshold: Number($("score").value), mask_threshold: Number($("mask").value)};
  }
  return request;
}

// Browsers know fewer formats than the daemon: without its pixels the answer is drawn on grey.
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

function showAnswer(picture, answer, roundTrip) {
  shown = {picture, answer, over: layerOf(answer, null), chosen: null};
  canvas.hidden = false;
  const enlarged = Math.max(1, Math.floor(SHARP / Math.max(answer.picture_width, answer.picture_height)));
  [canvas.width, canvas.height] = [enlarged * answer.picture_width, enlarged * answer.picture_height];
  $("summary").textContent = summaryOf(answer);
  canvas.ariaLabel = `The picture with its answer: ${$("summary").textContent}`;
  redraw();
  showFindings($("findings"), answer, (chosen) => {
    shown.chosen = chosen;
    shown.over = layerOf(answer, chosen);
    redraw();
  });
  showTimings($("stages"), $("timings"), answer.timings, roundTrip);
  $("scale").hidden = !answer.disparity;
  if (answer.disparity) {
    $("scale-least").textContent = `${answer.disparity.least.toFixed(1)} px`;
    $("scale-most").textContent = `${answer.disparity.most.toFixed(1)} px`;
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
    const body = JSON.stringify(await requestOf(chosen, sent));
    const started = performance.now();
    const response = await send("/v1/predict", {
      method: "POST", headers: {"Content-Type": "application/json"}, body, signal: mine.signal});
    const answer = await response.json();
    const roundTrip = performance.now() - started;
    if (!response.ok) throw new Error(answer.error);
    const picture = await pictureOf(sent[0], answer);
    if (mine === running) showAnswer(picture, answer, roundTrip);
  } catch (error) {
    if (mine === running && error.name !== "AbortError") complain(error.message);
  }
  if (mine === running) canvas.classList.remove("waiting");
}

function take(given, slot) {
  const pictures = [...given].sort((a, b) => a.name.localeCompare(b.name));
  if (!pictures.length) return;
  // Two at once are left and right, by their names.
  if (wanted().length === 2 && pictures.length > 1) files = pictures.slice(0, 2);
  else files[slot] = pictures[0];
  files.forEach((file, i) => {
    if (file) $(`slot-${i}`).querySelector(".slot-file").textContent = file.name;
  });
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
  // A picture that misses its place must not take the page's.
  document.ondragover = document.ondrop = (event) => event.preventDefault();
  $("model").onchange = () => {
    chooseModel();
    ask();
  };
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
colourScale();
let listed = null;
takeToken(() => complain(""));
watch($("models"), $("held"), (ready, refused) => {
  const there = ready !== null;
  const missing = refused ? `${location.host} asks for a token` : `${location.host} does not answer; trying again`;
  $("daemon").textContent = there ? `connected to ${location.host}` : missing;
  // Models come and go.
  if (there && ready !== listed) listModels().catch((error) => complain(error.message));
  listed = ready;
});
