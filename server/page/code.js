// The request of the form as code: curl, Python, Triton's client, grpcurl and the command, with the model, the options and
// the host that the page has.

import {VISIBLE_FROM, element} from "./overlay.js";

const $ = (id) => document.getElementById(id);
const COMMANDS = {
  classification: "classify", detection: "detect", segmentation: "segment", stereo: "stereo", actions: "actions",
  restoration: "restore", depth: "depth", embedding: "embed",
};
// What a Python programmer looks at first in each answer.
const PRINTED = {
  classification: "for one in answer.classes:\n        print(one.label, one.probability)",
  detection: "for one in answer.detections:\n        print(one.label, one.score, one.box)",
  segmentation: "for one in answer.areas:\n        print(one.label, one.fraction)",
  stereo: "print(answer.disparity.shape, answer.min, answer.max)",
  depth: "print(answer.depth.shape, answer.min, answer.max)",
  embedding: "print(answer.values.shape, answer.values[:6])",
  actions: "for one in answer.actions:\n        print(one.label, one.score, one.start_seconds, one.end_seconds)",
  restoration: "print(answer.volume.shape, answer.min, answer.max)",
};
const OPTIONS_FIELD = {classification: "classification", detection: "detection", stereo: "stereo_options", actions: "actions"};

export const shell = (text) => /^[\w.,:/@=+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
const python = (value) => typeof value === "string" ? JSON.stringify(value) : String(value);

// The options that the form has, by the names that the API, Python and the command give them.
/** @returns {Record<string, any>} */
function optionsOf(task) {
  const number = (id) => Number($(id).value);
  switch (task) {
    case "classification": return {top_k: number("top")};
    case "detection": return {score_threshold: number("score"), mask_threshold: number("mask")};
    case "actions": return {score_threshold: number("score")};
    default: return {};
  }
}

// `secured`: the daemon speaks TLS and, if `token`, asks for a token. `position` is where attention is asked about, or null.
export function codeOf({model, task, files, layer, position, origin, grpc, secured, token}) {
  const options = optionsOf(task), pairs = Object.entries(options), command = COMMANDS[task];
  const field = OPTIONS_FIELD[task], isVolume = task === "restoration", isPair = task === "stereo";
  // Digits beyond these are less than a pixel.
  const round = (value) => Number(value.toFixed(5)), at = layer && position ? {x: round(position.x), y: round(position.y)} : null;
  const header = token ? `-H "Authorization: Bearer $TOKEN" ` : "";
  const message = {model, ...(field && pairs.length ? {[field]: options} : {}), ...(layer ? {explain: {layer, ...(at ? {positions: [at]} : {})}} : {})};
  const input = isPair ? `"stereo":{"left":{"encoded":"%s"},"right":{"encoded":"%s"}}`
    : task === "actions" ? `"clip":{"video":"%s"}`
      : isVolume ? `"volume":{"tiff":"%s"}` : `"encoded":"%s"`;
  // printf is part of the shell, so that the file may be larger than an argument.
  const head = JSON.stringify(message).slice(0, -1).replaceAll("\\", "\\\\").replaceAll("%", "%%").replaceAll("'", "'\\''");
  const piped = `printf '${head},${input}}' ${files.map((file) => `"$(base64 -w0 ${shell(file)})"`).join(" ")} |`;
  const query = new URLSearchParams({...options, ...(layer ? {"explain.layer": layer} : {})}).toString();
  const url = `${origin}/v1/predict/${encodeURIComponent(model)}${query ? `?${query}` : ""}`;
  const keywords = [...pairs, ...(layer && !isVolume ? [["explain", null]] : [])].map(([name, value]) =>
    `, ${name}=${name === "explain" ? `saccade.Explain(layer=${python(layer)}${at ? `, positions=[(${at.x}, ${at.y})]` : ""})` : python(value)}`).join("");
  const flags = [...pairs, ...(layer && !isVolume ? [["explain", layer]] : []), ...(at ? [["explain-at", `${at.x},${at.y}`]] : [])]
    .map(([name, value]) => ` --${name.replaceAll("_", "-")} ${shell(String(value))}`).join("");
  const read = files.map((file) => `open(${python(file)}, "rb").read()`).join(", ");
  const client = [python(grpc), ...(secured ? ["tls=True"] : []), ...(token ? ['token=os.environ["TOKEN"]'] : [])].join(", ");
  return {
    // A query has no place for a position.
    curl: isPair || at
      ? `${piped}\n  curl ${header}-H 'Content-Type: application/json' --data-binary @- ${shell(`${origin}/v1/predict`)}`
      : `curl ${header}--data-binary ${shell(`@${files[0]}`)} ${shell(url)}`,
    Python: `${token ? "import os\n\n" : ""}import saccade\n\nwith saccade.Client(${client}) as client:\n` +
      `    answer = client.${command}(${[model, ...files].map(python).join(", ")}${keywords})\n    ${PRINTED[task]}`,
    "Triton's client": `import numpy\nimport tritonclient.grpc as triton\n\n` +
      `client = triton.InferenceServerClient(${python(grpc)}${secured ? ", ssl=True" : ""})\n` +
      `image = triton.InferInput("image", ${isPair ? "[1, 2]" : "[1]"}, "BYTES")\n` +
      `image.set_data_from_numpy(numpy.array([${isPair ? `[${read}]` : read}], dtype=object))\n` +
      `answer = client.infer(${python(model)}, [image]` +
      `${token ? `, headers={"authorization": "Bearer " + __import__("os").environ["TOKEN"]}` : ""})\n` +
      `for output in answer.get_response().outputs:\n    print(output.name, answer.as_numpy(output.name))`,
    grpcurl: `${piped}\n  grpcurl ${secured ? "" : "-plaintext "}${header}-d @ ${shell(grpc)} saccade.v1.Vision/Predict`,
    command: `saccade ${command} --model ${shell(model)} --url ${shell(grpc)}${secured ? " --tls" : ""}` +
      `${token ? " --token-file token" : ""}${flags} --output overlays ${files.map(shell).join(" ")}`,
  };
}

// Works without HTTPS too, where browsers have no clipboard for pages.
async function copy(block, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren(block);
    document.execCommand("copy");
  }
}

export function showCode(list, code) {
  list.replaceChildren(...Object.entries(code).map(([name, text]) => {
    const block = element("pre", {tabIndex: 0}, text);
    block.setAttribute("aria-label", `${name} code`);
    block.setAttribute("role", "region");
    const button = element("button", {type: "button", className: "copy", ariaLabel: `Copy the ${name} code`}, "Copy");
    button.onclick = async () => {
      await copy(block, text);
      button.textContent = "Copied";
      setTimeout(() => button.textContent = "Copy", 1500);
    };
    return element("div", {className: "code"}, element("h3", {}, name), button, block);
  }));
}

// Offers the content as a file.
export function save(name, content) {
  const url = URL.createObjectURL(content);
  element("a", {href: url, download: name}).click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// Connects the buttons that save. `shown()` is the answer that is shown, with what it is about.
export function listenToSaves(shown, overlayPng, cutOutPng) {
  const json = (value) => new Blob([JSON.stringify(value, null, 1)], {type: "application/json"});
  const nameOf = () => shown().sent[0].name.replace(/\.[^.]*$/, "");
  $("save-json").onclick = () => save(`${nameOf()}.json`, json(shown().answer));
  $("save-coco").onclick = () => save(`${nameOf()}.coco.json`, json(cocoOf(shown().answer)));
  $("save-picture").onclick = async () => save(`${nameOf()}.overlay.png`, await overlayPng());
  $("save-cut-out").onclick = async () => save(`${nameOf()}.cut-out.png`, await cutOutPng());
}

// COCO's x, y, v of each keypoint: v is 2 (visible) from a score of 0.5 on, 1 below, and 0 for a point without a score, whose
// x and y are 0 then.
/** @returns {Record<string, any>} */
function cocoKeypointsOf(keypoints) {
  if (!keypoints?.length) return {};
  const flat = keypoints.flatMap(({x, y, score}) => score > 0 ? [x, y, score >= VISIBLE_FROM ? 2 : 1] : [0, 0, 0]);
  return {keypoints: flat, num_keypoints: keypoints.filter(({score}) => score > 0).length};
}

// COCO's list of results, for pycocotools. Masks are run lengths as they come from the daemon.
export function cocoOf(answer) {
  return answer.detections.detections.map(({box, score, class_index, mask, keypoints}) => ({
    image_id: 0, category_id: Number(class_index), score,
    bbox: [box.x_min, box.y_min, box.x_max - box.x_min, box.y_max - box.y_min],
    ...(mask ? {segmentation: {size: [answer.picture_height, answer.picture_width], counts: mask.counts}} : {}),
    ...cocoKeypointsOf(keypoints),
  }));
}
