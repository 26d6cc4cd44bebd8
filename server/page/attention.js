// Attention maps: their colours and their scale, what each of them means, and what they have at a point.

import {bytesOf, element, letChoose, release, turbo} from "./overlay.js";

const $ = (id) => document.getElementById(id);

// What a map shows, by its name. The first that fits is taken.
/** @type {[RegExp, string][]} */
const MEANINGS = [
  [/^key \d+$/, "How much this channel of the keys gathers from each place: bright places give most to it."],
  [/ columns$/, "The weight of each column in the answer to the mean position: one of the two factors of the head's map."],
  [/ rows$/, "The weight of each row in the answer to the mean position: one of the two factors of the head's map."],
  [/^centre$/, "How much each place looks at the middle one. It was learned, and is the same for every picture."],
  [/ content$/, "How much each place counts for the marked point because of what it shows."],
  [/ axial$/, "How much each place counts for the marked point by way of its column and then its row."],
  [/ column$/, "The weights down the marked point's own column."],
  [/ row$/, "The weights along the marked point's own row."],
  [/^position \d+ head \d+$/, "What the marked point looks at: the weight of each place in the answer to it."],
];

// One sentence. `names` are those of all maps of the answer.
export function meaningOf(name, names) {
  const known = MEANINGS.find(([pattern]) => pattern.test(name));
  if (known) return known[1];
  return names.includes(`${name} columns`)
    ? "The weight of each place in the answer to the mean position: its column's weight times its row's."
    : "How strongly each place asks for what is common to all places.";
}

async function greysOf(map) {
  const grey = await createImageBitmap(new Blob([bytesOf(map.png)], {type: "image/png"}));
  const canvas = new OffscreenCanvas(map.width, map.height), context = canvas.getContext("2d");
  context.drawImage(grey, 0, 0);
  const {data} = context.getImageData(0, 0, map.width, map.height);
  return {...map, greys: Uint8Array.from({length: map.width * map.height}, (_, i) => data[4 * i])};
}

// The answer's maps with their values as greys.
export const mapsOf = (answer) => Promise.all((answer.explanation?.maps ?? []).map(greysOf));

const valueOf = ({greys, min, max}, i) => min + (max - min) * greys[i] / 255;

// Draws the map in colours of which the first stands for `least` and the last for `most`.
function colour(canvas, map, [least, most]) {
  const context = canvas.getContext("2d"), image = context.createImageData(map.width, map.height), span = most - least || 1;
  const colours = Array.from({length: 256}, (_, grey) => {
    const value = map.min + (map.max - map.min) * grey / 255;
    return [...turbo(Math.min(1, Math.max(0, (value - least) / span))), 255];
  });
  map.greys.forEach((grey, i) => image.data.set(colours[grey], 4 * i));
  context.putImageData(image, 0, 0);
}

/** @type {{maps: any[], canvases: any[], seen: any, point: any, lay: (canvas: any) => void}} */
let now = {maps: [], canvases: [], seen: null, point: null, lay: () => {}};

const pressedPlace = () => [...$("maps").querySelectorAll("button")].findIndex((one) => one.ariaPressed === "true");

/** @type {(maps: any[]) => [number, number]} */
const rangeOf = (maps) => [Math.min(...maps.map(({min}) => min)), Math.max(...maps.map(({max}) => max))];

// The map's value at the point of the picture; null if the network did not see it.
function valueAt(map, point) {
  const {seen} = now;
  if (!point || !seen) return null;
  const u = (point.x - seen.x) / seen.width, v = (point.y - seen.y) / seen.height;
  if (!(u >= 0 && v >= 0 && u < 1 && v < 1)) return null;
  return valueOf(map, Math.floor(v * map.height) * map.width + Math.floor(u * map.width));
}

function refresh() {
  const {maps, canvases, point, lay} = now, place = pressedPlace();
  if (!maps.length) return;
  const all = rangeOf(maps), isShared = $("one-scale").checked;
  maps.forEach((map, n) => {
    colour(canvases[n], map, isShared ? all : /** @type {[number, number]} */ ([map.min, map.max]));
    const here = valueAt(map, point);
    $("maps").children[n].querySelector(".here").textContent = here === null ? "" : `at the point: ${here.toPrecision(3)}`;
  });
  const [least, most] = isShared || place < 0 ? all : [maps[place].min, maps[place].max];
  $("attention-least").textContent = least.toPrecision(3);
  $("attention-most").textContent = most.toPrecision(3);
  $("attention-means").textContent = place < 0
    ? "Press a map to lay it over the picture, or click a point of the picture."
    : meaningOf(maps[place].name, maps.map(({name}) => name));
  lay(canvases[place] ?? null);
}

// Shows the maps in a list. `lay(canvas)` is called with the one to lay over the picture, or null. `seen` is the part of the
// picture that they cover.
export function showMaps(explanation, maps, lay) {
  now = {maps, canvases: maps.map(({width, height}) => element("canvas", {width, height})), seen: explanation?.seen ?? null,
         point: null, lay};
  $("attention-part").hidden = !maps.length;
  $("attention-title").textContent = `Attention of ${explanation?.layer}`;
  const list = $("maps"), names = maps.map(({name}) => name);
  list.replaceChildren(...maps.map(({name, min, max}, place) => {
    const button = element("button", {className: "map", title: meaningOf(name, names)}, now.canvases[place],
                           element("span", {}, name),
                           element("span", {className: "where"}, `${min.toPrecision(3)} to ${max.toPrecision(3)}`),
                           element("span", {className: "where here"}));
    letChoose(list, button, place, refresh);
    return element("li", {}, button);
  }));
  refresh();
}

// Shows what the maps have at the point, and lays the one over the picture in which the point stands out most; of maps
// that were made for the point, the first. Null for no point.
export function pointAt(point) {
  now.point = point;
  if (!now.maps.length || !point) return refresh();
  const strength = now.maps.map((map) => {
    const here = valueAt(map, point);
    return here === null || map.max <= map.min ? 0 : (here - map.min) / (map.max - map.min);
  });
  const best = /^position/.test(now.maps[0].name) ? 0 : strength.indexOf(Math.max(...strength));
  release($("maps"));
  $("maps").querySelectorAll("button")[best].ariaPressed = "true";
  refresh();
}

// No map lies over the picture any more.
export function liftMaps() {
  release($("maps"));
  refresh();
}

// The next or the last layer of the model, from the keyboard.
export function stepLayer(by) {
  const select = $("attention");
  if ($("attention-field").hidden) return;
  select.selectedIndex = Math.min(select.options.length - 1, Math.max(0, select.selectedIndex + by));
  select.dispatchEvent(new Event("change"));
}

export function listenToMaps() {
  $("one-scale").addEventListener("input", refresh);
}
