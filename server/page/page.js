// The page's main module: handles the user's choices, sends the request, shows the answer.

import {mapsOf} from "./attention.js";
import {chooseAction, listenToClip, showClip} from "./clip.js";
import {cocoOf, codeOf, save, showCode} from "./code.js";
import {STRIPS, accept, listenToFiles} from "./files.js";
import {showFindings, showTimings, summaryOf} from "./findings.js";
import {watch} from "./load.js";
import {turbo} from "./overlay.js";
import {blankOf, pictureOf} from "./picture.js";
import {checkSize, requestOf, sendRequest} from "./request.js";
import {canCutOut, chooseFinding, cutOutPng, listenToViewer, offerFilter, offerMaps, overlayPng, showAnswerOn, showPicture,
        visibleOf} from "./shown.js";
import {answerStrip, clearStrip, showStrip} from "./strip.js";
import {ask as get, hasToken, takeToken} from "./token.js";
import {listenToPlanes, showVolume, volumeOf} from "./volume.js";

const $ = (id) => document.getElementById(id);
const canvas = $("canvas");
// For each task, the name of its input and the accepted file types.
const SENT = {
  classification: ["Picture", "image/*,.tif,.tiff"],
  detection: ["Picture", "image/*,.tif,.tiff"],
  segmentation: ["Picture", "image/*,.tif,.tiff"],
  stereo: ["Left picture", "image/*,.tif,.tiff"],
  actions: ["Video, or its frames", "video/*,image/*"],
  restoration: ["Volume (TIFF)", ".tif,.tiff,image/tiff"],
};
const TASKS = Object.keys(SENT);
// Names of files in the code, as long as none is chosen.
const EXAMPLES = {
  classification: ["picture.jpg"], detection: ["picture.jpg"], segmentation: ["picture.jpg"], stereo: ["left.png", "right.png"],
  actions: ["clip.mp4"], restoration: ["volume.tif"],
};

let models = [];
let files = [];
let running = null;
let maxMessageBytes = 0;
let grpcPort = 0;
// The answer that is shown, and what it is about: {answer, sent, model}. Null while there is none.
let shown = null;

const model = () => models.find((one) => one.name === $("model").value);
// The files of the request; null stands for a missing one.
function wanted() {
  const task = model()?.task;
  if (task === "stereo") return [files[0] ?? null, files[1] ?? null];
  return task === "actions" && files[0]?.type.startsWith("image/") ? files : [files[0] ?? null];
}

function complain(text) {
  $("problem").hidden = !text;
  $("problem").textContent = text;
}

async function listModels() {
  const response = await get("/v1/models");
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
  const [name, types] = SENT[chosen?.task] ?? SENT.classification;
  $("slot-0").querySelector(".slot-name").textContent = name;
  $("slot-0").querySelector("input").accept = types;
  for (const field of document.querySelectorAll("[data-tasks]")) {
    field.hidden = !chosen || !field.dataset.tasks.split(" ").includes(chosen.task);
  }
  const layers = chosen?.attention_layers ?? [], before = $("attention").value;
  $("attention").replaceChildren(new Option("not shown", ""), ...layers.map((name) => new Option(name, name)));
  if (layers.includes(before)) $("attention").value = before;
  $("attention-field").hidden = !layers.length;
  const others = models.length && models.every((one) => !TASKS.includes(one.task));
  // Volumes have no largest size.
  const size = chosen?.input_width ? `${chosen.input_width}×${chosen.input_height}, ` : "";
  $("about").textContent = chosen
    ? `${chosen.architecture}${chosen.labels.length ? `, ${chosen.labels.length} classes` : ""}, ` +
      `${size}batches of up to ${chosen.max_batch_size}` +
      (chosen.task === "restoration" ? ". For volumes larger than a message, use the command: saccade restore" : "")
    : others ? "The models that are ready take tensors, which this page does not support; see docs/api.md."
      : "No model is ready yet.";
  showUse();
}

// The code for the request that the form has now. A clip's frames are not shown as code, but as a video is.
function showUse() {
  const chosen = model(), isCoco = Boolean(shown?.answer.detections);
  $("save-json").disabled = !shown;
  $("save-picture").disabled = !shown || canvas.hidden;
  $("save-coco").disabled = !isCoco;
  $("save-cut-out").disabled = !canCutOut();
  if (!$("code").open || !TASKS.includes(chosen?.task)) return;
  const isClip = chosen.task === "actions" && files[0]?.type.startsWith("image/");
  const names = EXAMPLES[chosen.task].map((name, i) => (isClip ? null : files[i]?.name) ?? name);
  showCode($("codes"), codeOf({
    model: chosen.name, task: chosen.task, files: names, layer: $("attention").value, origin: location.origin,
    grpc: `${location.hostname}:${grpcPort || 8001}`, secured: location.protocol === "https:", token: hasToken(),
  }));
}

const isPicture = (task, file) => task !== "restoration" && !(task === "actions" && !file.type.startsWith("image/"));

// Removes the answer, because it is about another file or another model.
function forget(text) {
  shown = null;
  $("summary").textContent = text;
  for (const id of ["clip", "volume", "scale", "attention-part", "classes-field"]) $(id).hidden = true;
  for (const id of ["findings", "timings", "stages", "histogram", "classes"]) $(id).replaceChildren();
  canvas.ariaLabel = "The picture, without an answer yet";
  showUse();
  $("video").pause();
}

// The picture is shown at once, before the daemon has it.
async function preview(sent, chosen, mine) {
  const picture = isPicture(chosen.task, sent[0]) ? await pictureOf(sent[0]) : null;
  if (mine !== running) return picture;
  showPicture(picture);
  $("tools").hidden = !picture;
  // On a phone the answer is below the form.
  if (matchMedia("(max-width: 44rem)").matches) {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    $("answer").scrollIntoView({behavior: calm ? "auto" : "smooth", block: "start"});
  }
  return picture;
}

// Shows the finding that was chosen in the list, on the picture or on the timeline.
async function choose(place) {
  const {answer, sent} = shown;
  if (!answer.actions) {
    chooseFinding(place);
    return showUse();
  }
  chooseAction(answer.actions, place);
  // If the clip consists of frames, show the first frame of the action.
  if (!canvas.hidden && place !== null) {
    const first = Math.min(sent.length - 1, Math.floor(answer.actions.actions[place].start_frame));
    const picture = await pictureOf(sent[first]);
    if (picture && shown?.answer === answer) showPicture(picture);
  }
}

// The list and the summary, of the findings that the filter lets through.
function list() {
  if (!shown) return;
  const {answer} = shown, visible = visibleOf(answer);
  $("summary").textContent = summaryOf(answer, visible.length);
  canvas.ariaLabel = `The picture with its answer: ${$("summary").textContent}`;
  showFindings($("findings"), answer, visible, choose);
  if (answer.actions) showClip(shown.sent, answer.actions, visible, press);
}

function press(place) {
  $("findings").querySelector(`[data-place="${place}"]`)?.click();
}

function filter() {
  if (!shown) return showUse();
  list();
  chooseFinding(null);
  showUse();
}

async function showAnswer(sent, picture, maps, answer, roundTrip, chosen) {
  const volume = answer.restoration ? await volumeOf(sent[0], answer.restoration) : null;
  shown = {answer, sent, model: chosen};
  $("clip").hidden = $("volume").hidden = true;
  const drawn = isPicture(chosen.task, sent[0]) ? picture ?? blankOf(answer.picture_width, answer.picture_height) : null;
  offerFilter(answer);
  if (drawn) showAnswerOn(drawn, answer, press);
  else showPicture(null);
  $("tools").hidden = !drawn;
  if (!answer.actions) $("video").pause();
  if (volume) showVolume(volume);
  list();
  showUse();
  offerMaps(answer, maps);
  showTimings($("stages"), $("timings"), answer.timings, roundTrip);
  $("scale").hidden = !answer.disparity;
  if (answer.disparity) {
    $("scale-least").textContent = `${answer.disparity.min.toFixed(1)} px`;
    $("scale-most").textContent = `${answer.disparity.max.toFixed(1)} px`;
  }
}

// `share` is how much was sent, from 0 to 1, null for an unknown part, or undefined when nothing is under way.
function showProgress(text, share) {
  $("progress").hidden = share === undefined;
  if (share === null) $("progress").removeAttribute("value");
  else $("progress").value = share ?? 0;
  if (!shown && text) $("summary").textContent = text;
}

async function ask() {
  const chosen = model(), sent = wanted();
  $("send").disabled = !chosen || sent.includes(null);
  running?.abort();
  const mine = running = new AbortController();
  // The answer of the same model to the same files stays until the new one is there.
  if (shown && (shown.model !== chosen || shown.sent.some((file, i) => file !== sent[i]))) forget("");
  complain("");
  showProgress("", undefined);
  if ($("send").disabled) {
    canvas.classList.remove("waiting");
    if (!shown) forget("Choose a picture, and the answer is drawn over it.");
    return;
  }
  canvas.classList.add("waiting");
  try {
    checkSize(chosen, sent, maxMessageBytes);
    showProgress("opening the picture", null);
    const picture = shown ? await pictureOf(sent[0]) : await preview(sent, chosen, mine);
    const request = await requestOf(chosen, sent, picture);
    if (mine !== running) return;
    showProgress("sending", 0);
    const started = performance.now();
    const answer = await sendRequest(request, mine.signal, (text, share) => mine === running && showProgress(text, share));
    const roundTrip = performance.now() - started, maps = await mapsOf(answer);
    if (mine === running) await showAnswer(sent, picture, maps, answer, roundTrip, chosen);
  } catch (error) {
    if (mine === running && error.name !== "AbortError") {
      complain(error.message);
      forget("No answer: see above.");
      await preview(sent, chosen, mine);
    }
  }
  if (mine !== running) return;
  showProgress("", undefined);
  canvas.classList.remove("waiting");
}

// What the summary says of the file's answer, in a few words.
async function summarise(file, signal) {
  const chosen = model();
  checkSize(chosen, [file], maxMessageBytes);
  const answer = await sendRequest(await requestOf(chosen, [file], null), signal, () => {});
  const least = Number($("score").value), found = answer.detections?.detections.filter(({score}) => score >= least);
  return summaryOf(answer, found?.length).split(" · ")[0];
}

// The model or an option has changed.
function askAll() {
  ask();
  if ($("strip").hidden) return;
  if (STRIPS.includes(model()?.task)) answerStrip(summarise);
  else clearStrip();
}

function take(given, slot) {
  const task = model()?.task, taken = accept(task, given, slot, files);
  clearStrip();
  if (taken.strip.length) {
    showStrip(taken.strip, (file) => put({files: [file], left: ""}));
    answerStrip(summarise);
  }
  put(taken);
}

function put(taken) {
  const task = model()?.task;
  files = taken.files;
  $("left").textContent = taken.left;
  const names = wanted().map((file) => file?.name);
  names.slice(0, 2).forEach((name, i) => {
    if (name) $(`slot-${i}`).querySelector(".slot-file").textContent = name;
  });
  if (names.length > 1 && task === "actions") {
    $("slot-0").querySelector(".slot-file").textContent = `${names.length} frames, ${names[0]} to ${names.at(-1)}`;
  }
  ask();
  showUse();
}

function soon(action, wait) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, wait);
  };
}

function listen() {
  listenToFiles(take);
  $("model").onchange = () => {
    chooseModel();
    askAll();
  };
  $("attention").onchange = askAll;
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
  for (const id of ["score", "classes"]) $(id).addEventListener("input", filter);
  const askSoon = soon(askAll, 150);
  for (const id of ["mask", "top"]) $(id).addEventListener("input", askSoon);
  for (const id of ["mask", "top", "attention"]) $(id).addEventListener("input", showUse);
  $("code").ontoggle = showUse;
  const json = (value) => new Blob([JSON.stringify(value, null, 1)], {type: "application/json"});
  const nameOf = () => shown.sent[0].name.replace(/\.[^.]*$/, "");
  $("save-json").onclick = () => save(`${nameOf()}.json`, json(shown.answer));
  $("save-coco").onclick = () => save(`${nameOf()}.coco.json`, json(cocoOf(shown.answer)));
  $("save-picture").onclick = async () => save(`${nameOf()}.overlay.png`, await overlayPng());
  $("save-cut-out").onclick = async () => save(`${nameOf()}.cut-out.png`, await cutOutPng());
}

function colourScale() {
  const bar = $("scale-bar").getContext("2d"), image = bar.createImageData(256, 1);
  for (let i = 0; i < 256; ++i) image.data.set([...turbo(i / 255), 255], 4 * i);
  bar.putImageData(image, 0, 0);
}

listen();
listenToClip();
listenToPlanes();
listenToViewer();
colourScale();
let listed = null;
takeToken(() => complain(""));
watch($("models"), $("held"), (load, wrong) => {
  $("daemon").textContent = load ? `connected to ${location.host}` : `${location.host} ${wrong}`;
  if (!load) {
    listed = null;
    return;
  }
  maxMessageBytes = load.max_message_bytes;
  grpcPort = load.grpc_port;
  // The set of ready models may have changed.
  const ready = load.models.map((one) => `${one.name} ${one.version}`).join();
  if (ready !== listed) listModels().catch((error) => complain(error.message));
  listed = ready;
});
