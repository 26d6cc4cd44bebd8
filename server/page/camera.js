// Takes a picture with the camera. It is opened when the button is pressed, and closed when the picture is taken.

const $ = (id) => document.getElementById(id);
let stream = null, taken = 0;
// How often the camera was opened or closed: who waits for it finds out whether it is still wanted.
let turn = 0;

const stop = (one) => one?.getTracks().forEach((track) => track.stop());

export function closeCamera() {
  ++turn;
  stop(stream);
  stream = null;
  $("camera-view").srcObject = null;
  $("camera-part").hidden = true;
}

// Browsers offer the camera to https and to this machine only.
export function offerCamera(isWanted) {
  const isThere = isWanted && Boolean(navigator.mediaDevices?.getUserMedia);
  $("camera").hidden = !isThere;
  if (!isThere) closeCamera();
}

const REASONS = {
  NotAllowedError: "the browser or the user did not allow it",
  NotFoundError: "there is none",
  NotReadableError: "another program uses it",
};

async function open(complain) {
  closeCamera();
  const mine = turn;
  try {
    const opened = await navigator.mediaDevices.getUserMedia({video: {facingMode: "environment"}});
    // The user may have turned to something else before the browser's question was answered.
    if (mine !== turn) return stop(opened);
    stream = opened;
    $("camera-view").srcObject = stream;
    $("camera-part").hidden = false;
    await $("camera-view").play();
    $("camera-take").focus();
  } catch (error) {
    // Closing it ends play() with an error.
    if (mine === turn) complain(`The camera cannot be used: ${REASONS[error.name] ?? error.message}.`);
  }
}

async function shoot() {
  const video = $("camera-view"), {videoWidth: width, videoHeight: height} = video;
  if (!width) return null;
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").drawImage(video, 0, 0);
  closeCamera();
  $("camera").focus();
  const type = "image/jpeg", blob = await canvas.convertToBlob({type, quality: 0.95});
  return new File([blob], `camera-${++taken}.jpg`, {type});
}

// `take(files)` is called with the picture.
export function listenToCamera(take, complain) {
  $("camera").onclick = () => open(complain);
  $("camera-stop").onclick = () => {
    closeCamera();
    $("camera").focus();
  };
  $("camera-take").onclick = async () => {
    const picture = await shoot();
    if (picture) take([picture]);
  };
}
