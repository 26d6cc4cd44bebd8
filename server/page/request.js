// Makes and sends the request for what the form has.

import {showTokenField, tokenHeaders} from "./token.js";

const $ = (id) => document.getElementById(id);

function base64Of(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => {
      const url = String(reader.result);
      resolve(url.slice(url.indexOf(",") + 1));
    };
    reader.onerror = () => reject(new Error(`${file.name} cannot be read: ${reader.error?.message}`));
    reader.readAsDataURL(file);
  });
}

// A map of more pixels than this takes longer to be sent and drawn than anybody sees of it.
const MAX_MAP_PIXELS = 2 ** 21;

// The size of a map for a picture that is opened, or null for the picture's own.
function mapSizeOf(picture) {
  if (!picture) return null;
  const {width, height} = picture.full, ratio = Math.sqrt(MAX_MAP_PIXELS / (width * height));
  return ratio < 1 ? {width: Math.round(ratio * width), height: Math.round(ratio * height)} : null;
}

// The options of the task, as the form has them. Scores are filtered by the page, so that the slider acts at once; the
// daemon omits what is below the model's own threshold.
/** @returns {Record<string, any>} */
export function optionsOf(task) {
  switch (task) {
    case "classification": return {top_k: Number($("top").value) || 5};
    case "detection": return {mask_threshold: Number($("mask").value)};
    case "segmentation": return {format: "RAW"};
    case "stereo":
    case "depth": return {format: "FLOAT"};
    default: return {};
  }
}

// What the maps of the chosen layer are asked for, or null. `position` is the place that they are about: x and y from 0 to 1.
function explainOf(position) {
  const layer = $("attention").value;
  return layer ? {layer, ...(position ? {positions: [position]} : {})} : null;
}

// A single file is sent as it is, with the options in the query.
function fileRequest(chosen, file, picture) {
  const query = new URLSearchParams(optionsOf(chosen.task)), size = ["segmentation", "depth"].includes(chosen.task) && mapSizeOf(picture);
  if (size) {
    query.set("size.width", String(size.width));
    query.set("size.height", String(size.height));
  }
  if (chosen.isPinned) query.set("version", chosen.version);
  if ($("attention").value && chosen.attention_layers.includes($("attention").value)) query.set("explain.layer", $("attention").value);
  return {
    path: `/v1/predict/${encodeURIComponent(chosen.name)}?${query}`,
    // The browser's guess of the type may be one that the daemon does not know; the daemon looks at the bytes.
    type: "application/octet-stream",
    body: file,
  };
}

// Several files are sent as JSON, and so is a position, for which a query has no place.
async function jsonRequest(chosen, sent, picture, position) {
  const encoded = await Promise.all(sent.map(base64Of)), size = mapSizeOf(picture), options = optionsOf(chosen.task);
  /** @type {Record<string, any>} */
  const request = {model: chosen.name, ...(chosen.isPinned ? {version: chosen.version} : {})};
  if (chosen.task === "stereo") {
    request.stereo = {left: {encoded: encoded[0]}, right: {encoded: encoded[1]}};
    request.stereo_options = {...options, ...(size ? {size} : {})};
  } else if (chosen.task === "actions") {
    request.clip = sent[0].type.startsWith("image/") ? {frames: {pictures: encoded.map((one) => ({encoded: one}))}}
      : {video: encoded[0]};
    request.actions = options;
  } else {
    request.encoded = encoded[0];
    // Depth has the options of stereo, and embeddings have none.
    const field = chosen.task === "depth" ? "stereo_options" : chosen.task;
    if (field !== "embedding") {
      request[field] = {...options, ...(size && ["segmentation", "depth"].includes(chosen.task) ? {size} : {})};
    }
  }
  const explain = explainOf(position);
  if (explain && chosen.attention_layers.includes(explain.layer)) request.explain = explain;
  return {path: "/v1/predict", type: "application/json", body: JSON.stringify(request)};
}

const isJson = (chosen, sent, position) =>
  Boolean(position) || chosen.task === "stereo" || (chosen.task === "actions" && sent[0].type.startsWith("image/"));

const mebibytes = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

// Throws an Error if the files are larger than a message may be; looks at their sizes only.
export function checkSize(chosen, sent, maxBytes, position = null) {
  const bytes = sent.reduce((sum, file) => sum + file.size, 0);
  // Base64 makes four bytes of three.
  const message = isJson(chosen, sent, position) ? Math.ceil(4 * bytes / 3) : bytes;
  if (!maxBytes || message <= maxBytes) return;
  throw new Error(`${sent.length > 1 ? "The files have" : `${sent[0].name} has`} ${mebibytes(bytes)}` +
    `${message > bytes ? `, and ${mebibytes(message)} as JSON` : ""}; this daemon takes messages up to ` +
    `${mebibytes(maxBytes)}. ` + (chosen.task === "restoration" ? "Use the command: saccade restore" :
      "Send a smaller file, or start the daemon with a larger --max-message-bytes"));
}

// Returns the request's path, media type and body, and the task. `chosen` is a model, whose default version is asked unless
// it `isPinned`; `sent` its input's files, `picture` the first of
// them if it is opened. `position` is where attention is asked about, or null.
export async function requestOf(chosen, sent, picture, position = null) {
  const request = isJson(chosen, sent, position) ? await jsonRequest(chosen, sent, picture, position) : fileRequest(chosen, sent[0], picture);
  return {...request, task: chosen.task};
}

// Sends it. `progress` is called with a text. fetch() does not say how much of the body was sent, so this is an
// XMLHttpRequest. Returns the answer, with a property `isDepth` that is not saved with it: a depth map is a `disparity`, too.
// Throws the daemon's error.
export function sendRequest({path, type, body, task}, signal, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries({...tokenHeaders(), "Content-Type": type})) {
      request.setRequestHeader(name, value);
    }
    request.upload.onprogress = ({loaded, total}) => {
      progress(loaded < total ? `sending: ${mebibytes(loaded)} of ${mebibytes(total)}` : "waiting for the answer", loaded / total);
    };
    request.upload.onload = () => progress("waiting for the answer", null);
    request.onload = () => {
      showTokenField(request.status);
      try {
        const answer = JSON.parse(request.responseText);
        if (request.status === 200) resolve(Object.defineProperty(answer, "isDepth", {value: task === "depth"}));
        else reject(new Error(answer.error));
      } catch {
        reject(new Error(`the daemon answered ${request.status} and no JSON`));
      }
    };
    request.onerror = () => reject(new Error(`${location.host} does not answer; is the daemon running?`));
    request.onabort = () => reject(new DOMException("another request was sent", "AbortError"));
    signal.addEventListener("abort", () => request.abort());
    request.send(body);
  });
}
