// Makes the request for what the form has.

const $ = (id) => document.getElementById(id);

function base64Of(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Error(`${file.name} cannot be read: ${reader.error?.message}`));
    reader.readAsDataURL(file);
  });
}

// The options of the task, as the form has them.
function optionsOf(task) {
  switch (task) {
    case "classification": return {top_k: Number($("top").value) || 5};
    case "detection": return {score_threshold: Number($("score").value), mask_threshold: Number($("mask").value)};
    case "segmentation": return {format: "RAW"};
    case "stereo": return {format: "FLOAT"};
    case "actions": return {score_threshold: Number($("score").value)};
    default: return {};
  }
}

// A single file is sent as it is, with the options in the query.
function fileRequest(chosen, file) {
  const query = new URLSearchParams(optionsOf(chosen.task));
  if ($("attention").value) query.set("explain.layer", $("attention").value);
  return {
    path: `/v1/predict/${encodeURIComponent(chosen.name)}?${query}`,
    // The browser's guess of the type may be one that the daemon does not know; the daemon looks at the bytes.
    type: "application/octet-stream",
    body: file,
  };
}

// Several files are sent as JSON.
async function jsonRequest(chosen, sent) {
  const encoded = await Promise.all(sent.map(base64Of));
  const request = {model: chosen.name};
  if (chosen.task === "stereo") {
    request.stereo = {left: {encoded: encoded[0]}, right: {encoded: encoded[1]}};
    request.stereo_options = optionsOf(chosen.task);
  } else {
    request.clip = {frames: {pictures: encoded.map((one) => ({encoded: one}))}};
    request.actions = optionsOf(chosen.task);
  }
  if ($("attention").value) request.explain = {layer: $("attention").value};
  return {path: "/v1/predict", type: "application/json", body: JSON.stringify(request)};
}

// Returns the request's path, media type and body. `chosen` is a model, `sent` its input's files.
export async function requestOf(chosen, sent) {
  const isFrames = chosen.task === "actions" && sent[0].type.startsWith("image/");
  return chosen.task === "stereo" || isFrames ? jsonRequest(chosen, sent) : fileRequest(chosen, sent[0]);
}
