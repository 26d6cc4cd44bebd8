// The model, the options and the tab in the page's address, after '#': links can be shared, and the daemon does not see them.

const $ = (id) => document.getElementById(id);
const NUMBERS = ["score", "mask", "top", "opacity", "swipe"];
const CHOICES = ["model", "rival", "attention"];
const defaults = new Map();

// The options as they are now, by name. Those that have not been touched are left out.
export function optionsNow() {
  const options = {};
  for (const id of CHOICES) if ($(id).value) options[id] = $(id).value;
  for (const id of NUMBERS) if ($(id).value !== defaults.get(id)) options[id] = $(id).value;
  return options;
}

// Sets the options. A value that the field does not take is ignored: anybody may have written the link.
export function setOptions(options) {
  for (const id of NUMBERS) {
    const field = $(id), value = Number(options[id] ?? defaults.get(id));
    if (!(value >= Number(field.min) && value <= Number(field.max)) || value === Number(field.value)) continue;
    field.value = String(value);
    field.dispatchEvent(new Event("input"));
  }
  for (const id of CHOICES) choose(id, options[id] ?? "");
}

// Selects the option if there is one of this value that can be chosen. Returns whether there is.
export function choose(id, value) {
  const there = [...$(id).options].some((option) => option.value === value && !option.disabled);
  if (there) $(id).value = value;
  return there;
}

export const readAddress = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

export function writeAddress() {
  const tab = $("load-view").hidden ? {} : {tab: "load"}, text = new URLSearchParams({...optionsNow(), ...tab}).toString();
  if (location.hash.slice(1) !== text) history.replaceState(null, "", text ? `#${text}` : location.pathname);
}

// Calls `action` once, `wait` milliseconds after the last of several calls.
export function soon(action, wait) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, wait);
  };
}

function show(name) {
  for (const one of ["ask", "load"]) {
    const isShown = one === name;
    $(`${one}-view`).hidden = !isShown;
    $(`tab-${one}`).ariaSelected = String(isShown);
    $(`tab-${one}`).tabIndex = isShown ? 0 : -1;
  }
}

// `changed` is called after another tab was chosen.
export function listenToTabs(changed) {
  for (const id of NUMBERS) defaults.set(id, $(id).value);
  for (const name of ["ask", "load"]) {
    $(`tab-${name}`).onclick = () => {
      show(name);
      writeAddress();
      changed();
    };
  }
  $("tabs").onkeydown = (event) => {
    const name = {ArrowLeft: "ask", Home: "ask", ArrowRight: "load", End: "load"}[event.key];
    if (!name) return;
    event.preventDefault();
    $(`tab-${name}`).click();
    $(`tab-${name}`).focus();
  };
  show(readAddress().tab === "load" ? "load" : "ask");
}
