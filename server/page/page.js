// The page's main module: handles the user's choices, sends the request, shows the answer.

import {choose as select, listenToTabs, optionsNow, readAddress, setOptions, soon, writeAddress} from "./address.js";
import {listenToMaps, mapsOf} from "./attention.js";
import {closeCamera, listenToCamera, offerCamera} from "./camera.js";
import {chooseAction, listenToClip, showClip, stopClip} from "./clip.js";
import {codeOf, listenToSaves, showCode} from "./code.js";
import {hideComparison, listenToSwipe, offerRivals, rivalOf, showComparison} from "./compare.js";
import {STRIPS, accept, listenToFiles, nameFiles} from "./files.js";
import {foundText, mapValue, showFindings, showTimings, summaryOf} from "./findings.js";
import {showLoadTab, watch} from "./load.js";
import {EXAMPLES, SENT, TASKS, aboutOf, defaultOf, isOfPictures, isPicture, keyOf} from "./models.js";
import {fillScale} from "./overlay.js";
import {blankOf, pictureOf} from "./picture.js";
import {choosePoint, listenToPoint, offerPoint, pointOf, positionFor} from "./point.js";
import {checkSize, requestOf, sendRequest} from "./request.js";
import {forgetSamples, showSamples} from "./samples.js";
import {remember} from "./session.js";
import {canCutOut, chooseFinding, cutOutPng, listenToViewer, markPoint, offerFilter, offerMaps, overlayPng, showAnswerOn,
        showFrame, showPicture, showRival, swipeTo, visibleOf} from "./shown.js";
import {answerStrip, clearStrip, showStrip, tellStripAgain} from "./strip.js";
import {ask as get, hasToken, takeToken} from "./token.js";
import {listenToPlanes, showVolume, volumeOf} from "./volume.js";

const $ = (id) => document.getElementById(id);
const canvas = $("canvas");
let models = [];
let files = [];
let running = null;
// The model that was asked last. While the daemon starts again it may not be ready, and others are.
let wished = "";
let maxMessageBytes = 0;
let grpcPort = 0;
// The answer that is shown, and what it is about: {answer, sent, model, rival}; `rival` is the answer that it is compared
// with, or null. Null while there is none.
/** @type {any} */
let shown = null;
// The options of the address are set once, when there are models.
let address = readAddress();

const model = () => defaultOf(models, $("model").value);
// The files of the request; null stands for a missing one.
function wanted() {
  const task = model()?.task;
  if (task === "stereo") return [files[0] ?? null, files[1] ?? null];
  return task === "actions" && files[0]?.type.startsWith("image/") ? files : [files[0] ?? null];
}

const nameSlots = () => nameFiles(wanted().map((file) => file?.name), model()?.task === "actions");

function complain(text) {
  $("problem").hidden = !text;
  $("problem").textContent = text;
}

async function listModels() {
  const response = await get("/v1/models");
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  models = answer.models.filter((one) => one.state === "READY");
  const before = wished || $("model").value;
  $("model").replaceChildren(...[...new Map(models.map((one) => [one.name, one])).values()].map((one) => {
    const option = new Option(`${one.name} (${one.task || "ensemble"})`, one.name);
    option.disabled = !TASKS.includes(one.task);
    return option;
  }));
  const usable = [...$("model").options].filter((option) => !option.disabled);
  const again = usable.find((option) => option.value === before) ?? usable[0];
  if (again) again.selected = true;
  forgetSamples();
  chooseModel();
  if (!models.length || !address) return;
  const {model: wanted} = address, options = address;
  address = null;
  if (wanted && !select("model", wanted)) {
    complain(`The address names the model '${wanted.slice(0, 100)}', which is not ready here.`);
  }
  chooseModel();
  setOptions({...options, model: $("model").value});
  chooseModel();
}

const isPointable = () => Boolean($("attention").value) && !canvas.hidden && isOfPictures(model()?.task);

function chooseModel() {
  const chosen = model(), stereo = chosen?.task === "stereo";
  $("slot-1").hidden = !stereo;
  const [name, types] = SENT[chosen?.task] ?? SENT.classification;
  $("slot-0").querySelector(".slot-name").textContent = name;
  $("slot-0").querySelector("input").accept = types;
  nameSlots();
  for (const field of document.querySelectorAll("[data-tasks]")) {
    field.hidden = !chosen || !field.dataset.tasks.split(" ").includes(chosen.task);
  }
  const layers = chosen?.attention_layers ?? [], before = $("attention").value;
  $("attention").replaceChildren(new Option("not shown", ""), ...layers.map((name) => new Option(name, name)));
  if (layers.includes(before)) $("attention").value = before;
  $("attention-field").hidden = !layers.length;
  offerRivals(models, chosen);
  offerCamera(isOfPictures(chosen?.task));
  showSamples(chosen && TASKS.includes(chosen.task) ? chosen.name : null, chosen?.task, (files) => take(files, 0), complain);
  offerPoint(shown, isPointable());
  $("about").textContent = aboutOf(chosen, models);
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
    model: chosen.name, task: chosen.task, files: names, layer: $("attention").value,
    position: shown && positionFor(chosen, shown.sent), origin: location.origin,
    grpc: `${location.hostname}:${grpcPort || 8001}`, secured: location.protocol === "https:", token: hasToken(),
  }));
}

// A point of the picture was chosen: networks whose attention is by position are asked about it, of the others the maps that
// are there tell what they have at it.
function pointed(point) {
  if (!choosePoint(point, shown)) return;
  if (shown.model.attention_by_position) ask();
  else markPoint(point);
}

// Removes the answer, because it is about another file or another model.
function forget(text) {
  shown = null;
  $("summary").textContent = text;
  for (const id of ["clip", "volume", "scale", "attention-part", "classes-field", "point-field"]) $(id).hidden = true;
  hideComparison();
  for (const id of ["findings", "timings", "stages", "histogram", "classes"]) $(id).replaceChildren();
  canvas.ariaLabel = "The picture, without an answer yet";
  showUse();
  stopClip();
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
function choose(place) {
  const {answer} = shown;
  if (!answer.actions) {
    chooseFinding(place);
    return showUse();
  }
  chooseAction(answer.actions, place);
}

let lastFrame = 0;
// Draws one of a clip's frames; of two that are opened at once, the one that was asked for last.
async function drawFrame(place) {
  const mine = ++lastFrame, {answer, sent} = shown, picture = await pictureOf(sent[Math.min(place, sent.length - 1)]);
  if (picture && mine === lastFrame && shown?.answer === answer) showFrame(picture);
}

// The list and the summary, of the findings that the filter lets through.
function list() {
  if (!shown) return;
  const {answer} = shown, visible = visibleOf(answer);
  $("summary").textContent = summaryOf(answer, visible.length);
  canvas.ariaLabel = `The picture with its answer: ${$("summary").textContent}`;
  showFindings($("findings"), answer, visible, choose);
  if (answer.actions) showClip(shown.sent, answer.actions, visible, press, drawFrame);
  if (shown.rival) showComparison(answer, shown.rival, visible, visibleOf(shown.rival));
}

function press(place) {
  $("findings").querySelector(`[data-place="${place}"]`)?.click();
}

function filter() {
  tellStripAgain();
  if (!shown) return showUse();
  list();
  chooseFinding(null);
  showUse();
}

async function showAnswer(sent, picture, maps, answer, rival, roundTrip, chosen) {
  const volume = answer.restoration ? await volumeOf(sent[0], answer.restoration) : null;
  shown = {answer, sent, model: chosen, rival};
  $("clip").hidden = $("volume").hidden = true;
  const drawn = isPicture(chosen.task, sent[0]) ? picture ?? blankOf(answer.picture_width, answer.picture_height) : null;
  offerFilter(answer);
  if (drawn) showAnswerOn(drawn, answer, press, pointed);
  else showPicture(null);
  hideComparison();
  $("swipe-field").hidden = !drawn;
  showRival(rival);
  $("tools").hidden = !drawn;
  if (!answer.actions) stopClip();
  if (volume) showVolume(volume);
  list();
  showUse();
  offerMaps(answer, maps);
  offerPoint(shown, isPointable());
  markPoint(pointOf(shown));
  remember({files: [...files], model: chosen.name, options: optionsNow(), text: $("summary").textContent}, askAgain);
  showTimings($("stages"), $("timings"), answer.timings, roundTrip);
  $("scale").hidden = !answer.disparity;
  if (answer.disparity) {
    $("scale-least").textContent = mapValue(answer, answer.disparity.min, 1);
    $("scale-most").textContent = mapValue(answer, answer.disparity.max, 1);
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
  if (chosen) wished = chosen.name;
  $("send").disabled = !chosen || sent.includes(null);
  running?.abort();
  const mine = running = new AbortController();
  // The answer of the same model to the same files stays until the new one is there.
  if (shown && (!chosen || keyOf(shown.model) !== keyOf(chosen) || shown.sent.some((file, i) => file !== sent[i]))) forget("");
  complain("");
  showProgress("", undefined);
  if ($("send").disabled) {
    canvas.classList.remove("waiting");
    showPicture(null);
    $("tools").hidden = true;
    forget("Choose a picture, and the answer is drawn over it.");
    return;
  }
  canvas.classList.add("waiting");
  try {
    const position = positionFor(chosen, sent), other = rivalOf(models);
    checkSize(chosen, sent, maxMessageBytes, position);
    showProgress("opening the picture", null);
    const picture = shown ? await pictureOf(sent[0]) : await preview(sent, chosen, mine);
    const request = await requestOf(chosen, sent, picture, position);
    if (mine !== running) return;
    showProgress("sending", 0);
    const started = performance.now(), told = (text, share) => mine === running && showProgress(text, share);
    const answer = await sendRequest(request, mine.signal, told);
    const roundTrip = performance.now() - started, maps = await mapsOf(answer);
    // One after the other, so that neither waits for the other.
    const rival = other && mine === running ? await answerOf({...other, isPinned: true}, sent, picture, mine.signal, told) : null;
    // Meanwhile "no other model" may have been chosen.
    const isCompared = other && $("rival").value === keyOf(other);
    if (mine === running) await showAnswer(sent, picture, maps, answer, isCompared ? rival : null, roundTrip, chosen);
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

// The other model's answer; null if it has none, which is told. The first model's answer stays.
async function answerOf(other, sent, picture, signal, told) {
  try {
    return await sendRequest(await requestOf(other, sent, picture), signal, told);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    complain(`${other.name} ${other.version} has no answer to compare with: ${error.message}`);
    return null;
  }
}

// Returns a function that tells what the summary says of the file's answer, in a few words. It keeps scores, no masks.
async function summarise(file, signal) {
  const chosen = model();
  checkSize(chosen, [file], maxMessageBytes);
  const answer = await sendRequest(await requestOf(chosen, [file], null), signal, () => {});
  if (answer.detections) {
    const scores = answer.detections.detections.map(({score}) => score);
    return () => foundText(scores.filter((score) => score >= Number($("score").value)).length);
  }
  const [text] = summaryOf(answer).split(" · ");
  return () => text;
}

// The model or an option has changed.
function askAll() {
  writeAddress();
  offerPoint(shown, isPointable());
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
  files = taken.files;
  $("left").textContent = taken.left;
  nameSlots();
  ask();
  showUse();
}

// Asks what was asked before.
function askAgain({files: given, model: name, options}) {
  if (!select("model", name)) return complain(`The model '${name}' is not ready any more.`);
  chooseModel();
  setOptions(options);
  chooseModel();
  clearStrip();
  put({files: given, left: ""});
  writeAddress();
}

// The tab, or what lies behind the address, has changed.
function readAgain() {
  const options = readAddress();
  if (options.model) select("model", options.model);
  chooseModel();
  setOptions({...options, model: $("model").value});
  askAll();
}

function listen() {
  listenToTabs(showLoadTab);
  listenToCamera((given) => take(given, 0), complain);
  listenToFiles(take);
  listenToMaps();
  listenToSwipe(swipeTo);
  window.addEventListener("hashchange", readAgain);
  window.addEventListener("pagehide", closeCamera);
  $("load-model").onchange = showLoadTab;
  $("rival").onchange = () => {
    hideComparison();
    showRival(null);
    if ($("rival").value) return askAll();
    writeAddress();
    if (shown) shown.rival = null;
  };
  listenToPoint(() => shown, pointed);
  $("model").onchange = () => {
    chooseModel();
    askAll();
  };
  $("attention").onchange = askAll;
  $("form").onsubmit = (event) => {
    event.preventDefault();
    ask();
  };
  /** @type {[string, (value: number) => string][]} */
  const outputs = [["score", (v) => v.toFixed(2)], ["mask", (v) => v.toFixed(2)],
                   ["opacity", (v) => `${(100 * v).toFixed(0)}%`]];
  for (const [id, text] of outputs) {
    const show = () => $(`${id}-shown`).textContent = text(Number($(id).value));
    show();
    $(id).addEventListener("input", show);
  }
  for (const id of ["score", "classes"]) $(id).addEventListener("input", filter);
  const askSoon = soon(askAll, 150);
  for (const id of ["mask", "top"]) $(id).addEventListener("input", askSoon);
  for (const id of ["mask", "top", "attention"]) $(id).addEventListener("input", showUse);
  const write = soon(writeAddress, 300);
  for (const id of ["score", "mask", "top", "opacity", "swipe"]) $(id).addEventListener("input", write);
  $("code").ontoggle = showUse;
  listenToSaves(() => shown, overlayPng, cutOutPng);
}

listen();
listenToClip();
listenToPlanes();
listenToViewer();
for (const id of ["scale-bar", "attention-bar"]) fillScale($(id));
// The models that are ready according to the list on the page, and whether the last attempt to list them failed.
let listed = null, unlisted = false;
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
  if (ready === listed) return;
  listed = ready;
  listModels().then(() => {
    if (unlisted) complain("");
    unlisted = false;
  }, (error) => {
    complain(error.message);
    // With the next look at the daemon the list is asked for again.
    unlisted = true;
    listed = null;
  });
});
