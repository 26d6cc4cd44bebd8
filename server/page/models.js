// What the page knows of models: what their tasks take, and what is said about each.

// For each task, the name of its input and the accepted file types.
export const SENT = {
  classification: ["Picture", "image/*,.tif,.tiff"],
  detection: ["Picture", "image/*,.tif,.tiff"],
  segmentation: ["Picture", "image/*,.tif,.tiff"],
  stereo: ["Left picture", "image/*,.tif,.tiff"],
  depth: ["Picture", "image/*,.tif,.tiff"],
  embedding: ["Picture", "image/*,.tif,.tiff"],
  actions: ["Video, or its frames", "video/*,image/*"],
  restoration: ["Volume (TIFF)", ".tif,.tiff,image/tiff"],
};
export const TASKS = Object.keys(SENT);
// Names of files in the code, as long as none is chosen.
export const EXAMPLES = {
  classification: ["picture.jpg"], detection: ["picture.jpg"], segmentation: ["picture.jpg"], stereo: ["left.png", "right.png"],
  depth: ["picture.jpg"], embedding: ["picture.jpg"],
  actions: ["clip.mp4"], restoration: ["volume.tif"],
};

export const isOfPictures = (task) => ["classification", "detection", "segmentation", "stereo", "depth", "embedding"].includes(task);

// Whether the viewer can show the file that a model of this task was sent.
export const isPicture = (task, file) => task !== "restoration" && !(task === "actions" && !file.type.startsWith("image/"));

// Names a version of a model in tables and lists.
export const keyOf = ({name, version}) => `${name} ${version}`;

// The default version of a model, which is its highest; undefined if there is none of this name.
export const defaultOf = (models, name) => models.filter((one) => one.name === name)
  .reduce((best, one) => best && Number(best.version) > Number(one.version) ? best : one, undefined);

// `chosen` may be undefined; `models` are those that are ready.
export function aboutOf(chosen, models) {
  if (!chosen) {
    return models.length && models.every((one) => !TASKS.includes(one.task))
      ? "The models that are ready take tensors, which this page does not support; see docs/api.md."
      : "No model is ready yet.";
  }
  // Volumes have no largest size.
  const size = chosen.input_width ? `${chosen.input_width}×${chosen.input_height}, ` : "";
  return `${chosen.architecture}${chosen.labels.length ? `, ${chosen.labels.length} classes` : ""}, ` +
    `${size}batches of up to ${chosen.max_batch_size}` +
    (chosen.task === "restoration" ? ". For volumes larger than a message, use the command: saccade restore" : "");
}
