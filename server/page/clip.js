// A clip and its actions on a timeline.

import {colourOf} from "./overlay.js";
import {clock} from "./findings.js";
import {nameOf} from "./text.js";

const $ = (id) => document.getElementById(id);
let playing = null, loaded = null, seconds = 0;
// A clip of frames: how many, their rate, who draws one, and the timer that plays them.
/** @type {{count: number, rate: number, draw: (place: number) => void}} */
let frames = {count: 0, rate: 1, draw: () => {}};
let timer = null;

function bar(action, place, choose) {
  const made = document.createElement("span"), name = nameOf(action);
  made.className = "happening";
  made.dataset.place = place;
  made.style.left = `${100 * action.start_seconds / seconds}%`;
  made.style.width = `${100 * (action.end_seconds - action.start_seconds) / seconds}%`;
  made.style.background = colourOf(action.class_index);
  [made.dataset.start, made.dataset.end] = [action.start_seconds, action.end_seconds];
  made.title = `${name}, ${clock(action.start_seconds)}–${clock(action.end_seconds)}`;
  made.onclick = choose;
  return made;
}

// The indices of the actions in `visible`, grouped by class; the class of the most likely action comes first.
function lanesOf({actions}, visible) {
  const classes = [...new Set(visible.map((place) => actions[place].class_index))];
  return classes.map((index) => visible.filter((place) => actions[place].class_index === index));
}

// Draws one lane per class, the most likely first. Hidden from screen readers and the keyboard, because the list beside
// it has the same content.
function drawTimeline(answer, visible, choose) {
  const rows = lanesOf(answer, visible).map((places) => {
    const row = document.createElement("div"), name = document.createElement("span"), line = document.createElement("div");
    [row.className, name.className, line.className] = ["lane", "lane-name", "lane-line"];
    name.textContent = nameOf(answer.actions[places[0]]);
    line.append(...places.map((place) => bar(answer.actions[place], place, () => choose(place))));
    row.append(name, line);
    return row;
  });
  $("timeline").replaceChildren(...rows);
  $("timeline-end").textContent = clock(seconds);
}

const secondsNow = () => frames.count ? Number($("frame").value) / frames.rate : $("video").currentTime;

function moveHead() {
  const at = secondsNow();
  $("head").hidden = $("video").hidden && !frames.count;
  $("head").style.left = `${seconds > 0 ? 100 * Math.min(1, at / seconds) : 0}%`;
  for (const one of document.querySelectorAll(".happening")) {
    one.classList.toggle("now", !$("head").hidden && at >= Number(one.dataset.start) && at < Number(one.dataset.end));
  }
}

function showFrame() {
  const place = Number($("frame").value);
  $("frame-shown").textContent = `${place + 1} of ${frames.count}`;
  moveHead();
  frames.draw(place);
}

export function stopClip() {
  $("video").pause();
  clearInterval(timer);
  timer = null;
  $("play").textContent = "Play";
}

function playFrames() {
  if (timer) return stopClip();
  const last = frames.count - 1;
  if (Number($("frame").value) === last) $("frame").value = "0";
  $("play").textContent = "Pause";
  timer = setInterval(() => {
    if (Number($("frame").value) >= last) return stopClip();
    $("frame").value = String(Number($("frame").value) + 1);
    showFrame();
  }, 1000 / frames.rate);
}

// `sent` is a video or frames, `visible` the indices of the actions to draw. `choose(place)` is called with the index of
// the action that is pressed, `draw(place)` with the frame to show.
export function showClip(sent, answer, visible, choose, draw) {
  seconds = answer.frames / answer.frames_per_second;
  const isFrames = sent[0].type.startsWith("image/");
  frames = {count: isFrames ? sent.length : 0, rate: answer.frames_per_second, draw};
  $("play-field").hidden = !isFrames;
  $("frame").max = String(Math.max(0, sent.length - 1));
  drawTimeline(answer, visible, choose);
  $("clip").hidden = false;
  // Other actions of the clip that is shown already do not stop it. An answer is drawn on the first frame.
  if (sent[0] === loaded) {
    if (frames.count) showFrame();
    return;
  }
  loaded = sent[0];
  stopClip();
  $("frame").value = "0";
  $("frame-shown").textContent = `1 of ${sent.length}`;
  const video = $("video");
  if (playing) URL.revokeObjectURL(playing);
  playing = null;
  video.hidden = true;
  video.removeAttribute("src");
  if (!sent[0].type.startsWith("image/")) {
    playing = URL.createObjectURL(sent[0]);
    // Browsers support fewer formats than the daemon. If they fail, only the times are shown.
    video.onloadeddata = () => {
      video.hidden = false;
      moveHead();
    };
    video.onerror = () => video.hidden = true;
    video.src = playing;
  }
  moveHead();
}

// Marks the action and seeks to its start. Null removes the mark.
export function chooseAction(answer, place) {
  const chosen = place === null ? null : answer.actions[place];
  for (const one of document.querySelectorAll(".happening")) {
    one.classList.toggle("chosen", place !== null && Number(one.dataset.place) === place);
  }
  if (!chosen) return;
  if (!$("video").hidden) $("video").currentTime = chosen.start_seconds;
  if (!frames.count) return;
  // The first frame of the action.
  $("frame").value = String(Math.min(frames.count - 1, Math.floor(chosen.start_frame)));
  showFrame();
}

export function listenToClip() {
  $("video").addEventListener("timeupdate", moveHead);
  $("frame").addEventListener("input", showFrame);
  $("play").onclick = playFrames;
}
