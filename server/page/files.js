// Takes files: chosen, dropped anywhere on the page, or pasted.

import {MAX_FILES} from "./strip.js";
import {isolated} from "./text.js";

const $ = (id) => document.getElementById(id);

// The first slot of an input that takes several is sorted by name; "2" comes before "10".
const sortedOf = (given) => [...given].sort((a, b) => a.name.localeCompare(b.name, undefined, {numeric: true}));

// Tasks of a single picture, for which several pictures are a strip.
export const STRIPS = ["classification", "detection", "segmentation"];

// The files that a model's input takes of those given, in `files`, by slot; what was left out, as text or ""; and those
// of a strip.
export function accept(task, given, slot, files) {
  const sorted = sortedOf(given);
  if (task === "actions" && sorted[0].type.startsWith("image/")) return {files: sorted, left: "", strip: []};
  if (STRIPS.includes(task) && sorted.length > 1) {
    const left = sorted.length > MAX_FILES ? `${sorted.length} files were given, and ${MAX_FILES} of them were taken.` : "";
    return {files: [sorted[0]], left, strip: sorted.slice(0, MAX_FILES)};
  }
  const room = task === "stereo" && sorted.length > 1 ? 2 : 1, taken = sorted.slice(0, room);
  const left = sorted.length > room
    ? `${sorted.length} files were given, and this model takes ${room === 2 ? "two" : "one"} at a time: ` +
      `${taken.map((file) => isolated(file.name)).join(" and ")} ${room === 2 ? "were" : "was"} taken.`
    : "";
  if (room === 2) return {files: taken, left, strip: []};
  const others = task === "stereo" ? [...files.slice(0, 2)] : [];
  others[task === "stereo" ? slot : 0] = taken[0];
  return {files: others, left, strip: []};
}

// What the slots say without a file.
const slotText = (slot) => $(`slot-${slot}`).querySelector(".slot-file");
const EMPTY = [0, 1].map((slot) => slotText(slot).textContent);

// Names the files in the slots; a missing one has no name. `isClip`: several files are its frames.
export function nameFiles(names, isClip) {
  const say = (slot, text) => slotText(slot).textContent = text;
  if (names.length > 1 && isClip) return say(0, `${names.length} frames, ${isolated(names[0])} to ${isolated(names.at(-1))}`);
  EMPTY.forEach((text, slot) => say(slot, names[slot] ? isolated(names[slot]) : text));
}

// Calls `take(files, slot)` for each way to give files. What is dropped beside the slots goes to the first.
export function listenToFiles(take) {
  [0, 1].forEach((slot) => {
    const input = $(`slot-${slot}`).querySelector("input");
    input.multiple = true;
    input.onchange = () => {
      if (input.files.length) take([...input.files], slot);
      // The same file may be chosen again, after it has changed.
      input.value = "";
    };
  });
  const over = (event) => {
    for (const slot of [0, 1]) $(`slot-${slot}`).classList.toggle("over", event !== null && slot === slotOf(event));
    document.body.classList.toggle("over", event !== null);
  };
  const slotOf = (event) => event.target.closest?.("#slot-1") ? 1 : 0;
  document.ondragover = (event) => {
    event.preventDefault();
    over(event);
  };
  document.ondragleave = (event) => {
    if (!event.relatedTarget) over(null);
  };
  document.ondrop = (event) => {
    event.preventDefault();
    over(null);
    if (event.dataTransfer.files.length) take([...event.dataTransfer.files], slotOf(event));
  };
  document.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    if (!files.length) return;
    event.preventDefault();
    take(files, 0);
  });
}
