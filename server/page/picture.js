// Opens pictures as the daemon sees them: upright, without transparency, TIFF included.

import {pictureOfTiff} from "./tiff.js";

// Of larger pictures a smaller copy is drawn as long as it suffices.
const SMALL = 2048;
// Pictures of many millions of pixels are kept, so only the last few of them.
const KEPT = 4;
const opened = new Map();

const isTiff = (file) => /tiff$/.test(file.type) || /\.tiff?$/i.test(file.name);

// The daemon ignores transparency: pixels have the colours that they would have without it. A 2D canvas forgets the
// colours of transparent pixels, WebGL does not.
async function withoutAlpha(file, bitmap) {
  const probe = new OffscreenCanvas(64, 64), context = probe.getContext("2d");
  context.drawImage(bitmap, 0, 0, 64, 64);
  if (!context.getImageData(0, 0, 64, 64).data.some((value, i) => i % 4 === 3 && value < 255)) return bitmap;
  const gl = new OffscreenCanvas(1, 1).getContext("webgl"), {width, height} = bitmap;
  if (!gl || Math.max(width, height) > gl.getParameter(gl.MAX_TEXTURE_SIZE)) return bitmap;
  const straight = await createImageBitmap(file, {premultiplyAlpha: "none"}), image = new ImageData(width, height);
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, straight);
  gl.bindFramebuffer(gl.FRAMEBUFFER, gl.createFramebuffer());
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, gl.getParameter(gl.TEXTURE_BINDING_2D), 0);
  gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(image.data.buffer));
  for (let i = 3; i < image.data.length; i += 4) image.data[i] = 255;
  return createImageBitmap(image);
}

async function open(file) {
  if (isTiff(file)) {
    const image = await pictureOfTiff(await file.arrayBuffer());
    return {full: await createImageBitmap(image), small: null};
  }
  const bitmap = await createImageBitmap(file), {width, height} = bitmap;
  const ratio = SMALL / Math.max(width, height);
  const small = ratio < 1
    ? await createImageBitmap(file, {resizeWidth: Math.round(ratio * width), resizeHeight: Math.round(ratio * height)}) : null;
  return /jpeg$/.test(file.type) ? {full: bitmap, small} : {full: await withoutAlpha(file, bitmap), small: null};
}

// Returns {full, small}, bitmaps of which `small` may be null; null if this browser cannot read the file. The
// last few files are not opened again.
export function pictureOf(file) {
  const picture = opened.get(file) ?? open(file).catch(() => null);
  opened.delete(file);
  opened.set(file, picture);
  if (opened.size > KEPT) opened.delete(opened.keys().next().value);
  return picture;
}

export function blankOf(width, height) {
  const blank = new OffscreenCanvas(width, height), ground = blank.getContext("2d");
  ground.fillStyle = "#888";
  ground.fillRect(0, 0, width, height);
  return {full: blank, small: null};
}

// Draws the picture under the view. Beyond four screen pixels to one of its own it is drawn in squares.
export function drawPicture(context, {full, small}, view) {
  const useSmall = small && view.scale * devicePixelRatio * full.width <= small.width;
  context.imageSmoothingEnabled = view.scale < 4;
  context.drawImage(useSmall ? small : full, view.x, view.y, view.scale * full.width, view.scale * full.height);
}
