// What was asked since the page was opened. It is kept in this tab only, and gone with it.

import {element} from "./overlay.js";
import {isolated} from "./text.js";

const $ = (id) => document.getElementById(id);
const KEPT = 30;
// {files, model, options, text}, the last one first.
let entries = [];

const sameAs = (a, b) => a.model === b.model && JSON.stringify(a.options) === JSON.stringify(b.options) &&
  a.files.length === b.files.length && a.files.every((file, i) => file === b.files[i]);

// `again(entry)` is called with the one that is pressed.
export function remember(entry, again) {
  entries = [entry, ...entries.filter((other) => !sameAs(entry, other))].slice(0, KEPT);
  $("history-part").hidden = false;
  $("history-part").querySelector("summary").textContent = `This session: ${entries.length}`;
  $("history").replaceChildren(...entries.map((one) => {
    const {files, model, text} = one;
    const names = files.length > 2 ? `${files.length} files, ${isolated(files[0].name)} …` : files.map(({name}) => isolated(name)).join(", ");
    const button = element("button", {type: "button", className: "finding plain"}, element("span", {}, names),
                           element("span", {className: "value"}, model), element("span", {className: "where"}, text));
    button.onclick = () => again(one);
    return element("li", {}, button);
  }));
}
