// A clip and its actions on a timeline.

import {colourOf} from "./overlay.js";
import {clock} from "./findings.js";

const $ = (id) => document.getElementById(id);
let playing = null, loaded = null, seconds = 0;

function bar(action, place, choose) {
  const made = document.createElement("span"), name = action.label || `class ${action.class_index}`;
  made.className = "happening";
  made.dataset.place = place;
  made.style.left = `${100 * action.start_seconds / seconds}%`;
  made.style.width = `${100 * (action.end_seconds - action.start_seconds) / seconds}%`;
  made.style.background = colourOf(action.class_index);
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
    const {label, class_index} = answer.actions[places[0]];
    name.textContent = label || `class ${class_index}`;
    line.append(...places.map((place) => bar(answer.actions[place], place, () => choose(place))));
    row.append(name, line);
    return row;
  });
  $("timeline").replaceChildren(...rows);
  $("timeline-end").textContent = clock(seconds);
}

function moveHead() {
  $("head").hidden = $("video").hidden;
  $("head").style.left = `${seconds > 0 ? 100 * Math.min(1, $("video").currentTime / seconds) : 0}%`;
}

// `sent` is a video or frames, `visible` the indices of the actions to draw. `choose(place)` is called with the index of
// the action that is pressed.
export function showClip(sent, answer, visible, choose) {
  seconds = answer.frames / answer.frames_per_second;
  drawTimeline(answer, visible, choose);
  $("clip").hidden = false;
  // Other actions of the clip that is shown already do not stop it.
  if (sent[0] === loaded) return;
  loaded = sent[0];
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
}

export function listenToClip() {
  $("video").addEventListener("timeupdate", moveHead);
}
