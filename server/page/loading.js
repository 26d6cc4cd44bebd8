// The models that are loading, with the step that each is at, and those that are not served.

import {keyOf} from "./models.js";
import {element} from "./overlay.js";

const $ = (id) => document.getElementById(id);

// The steps of a load in their order, as the daemon names them.
const STEPS = {
  checking: "checking its files",
  precision: "choosing its precision on the samples",
  reading: "reading and packing the weights",
  trial: "timing passes with fewer threads",
  warm_up: "warming up",
};
const NAMES = Object.keys(STEPS);

// Which share of a load is over, counting every step as equal.
export function shareOf({name, done, of}) {
  const place = NAMES.indexOf(name);
  return place < 0 ? 0 : (place + (of > 0 ? done / of : 0)) / NAMES.length;
}

export function toldOf({state, step, reason}) {
  if (state !== "LOADING") return `not served: ${reason || "no reason is known"}`;
  if (!STEPS[step?.name]) return "waits to be loaded";
  const count = step.of > 0 ? `, ${step.done} of ${step.of} batches` : "";
  return `loading for ${step.seconds.toFixed(0)} s: ${STEPS[step.name]}${count}`;
}

function lineOf(list, key) {
  const there = [...list.children].find((one) => one.dataset.key === key);
  if (there) return there;
  const bar = element("progress", {max: 1, ariaLabel: `How far ${key} is loaded`});
  const made = element("li", {}, element("b", {}, key), " ", element("span", {}), bar);
  made.dataset.key = key;
  return made;
}

// Lines stay as long as their models wait, so that a reason that somebody selects stays selected.
export function showStates(states) {
  const ready = states.filter(({state}) => state === "READY").length, others = states.filter(({state}) => state !== "READY");
  $("loading").hidden = !others.length;
  $("ready").max = Math.max(1, states.length);
  $("ready").value = ready;
  const text = `${ready} of ${states.length} model versions are ready`;
  if ($("ready-text").textContent !== text) $("ready-text").textContent = text;
  const list = $("states"), lines = others.map((one) => {
    const line = lineOf(list, keyOf(one)), told = line.querySelector("span"), bar = line.querySelector("progress");
    const isLoading = one.state === "LOADING", text = toldOf(one);
    line.className = isLoading ? "" : "bad";
    if (told.textContent !== text) told.textContent = text;
    bar.hidden = !isLoading;
    bar.value = isLoading && one.step ? shareOf(one.step) : 0;
    return line;
  });
  if (lines.length !== list.children.length || lines.some((line, i) => line !== list.children[i])) list.replaceChildren(...lines);
}
