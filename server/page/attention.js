// Attention maps: a layer's maps in colour, beside the picture and over it.

import {bytesOf, element, letChoose, turbo} from "./overlay.js";

async function colouredOf(map) {
  const grey = await createImageBitmap(new Blob([bytesOf(map.png)], {type: "image/png"}));
  const canvas = element("canvas", {width: map.width, height: map.height}), context = canvas.getContext("2d");
  context.drawImage(grey, 0, 0);
  const image = context.getImageData(0, 0, map.width, map.height);
  for (let i = 0; i < image.data.length; i += 4) image.data.set(turbo(image.data[i] / 255), i);
  context.putImageData(image, 0, 0);
  return canvas;
}

export const mapsOf = (answer) => Promise.all((answer.explanation?.maps ?? []).map(colouredOf));

// `choose(place)` is called with the index of the map that is pressed, or null when it is released. Maps of classifiers
// cannot be laid over the picture, because classifiers see only a part of it.
export function showMaps(list, answer, maps, choose) {
  const choosable = !answer.classification && !answer.actions;
  list.replaceChildren(...maps.map((canvas, place) => {
    const {name, min, max} = answer.explanation.maps[place];
    const button = element(choosable ? "button" : "div", {className: "map"}, canvas, element("span", {}, name),
                           element("span", {className: "where"}, `${min.toPrecision(3)} to ${max.toPrecision(3)}`));
    if (choosable) letChoose(list, button, place, choose);
    return element("li", {}, button);
  }));
}
