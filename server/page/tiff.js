// Reads TIFF, which browsers do not support: volumes of grey pages, one per plane, and pictures in grey or RGB, of 8 or 16
// bits or float32, in strips or tiles, uncompressed or compressed with LZW or deflate. The daemon accepts further kinds
// of files; of those the page shows only the answer.

const WIDTH = 256, HEIGHT = 257, BITS = 258, COMPRESSION = 259, STRIPS = 273, SAMPLES = 277, ROWS = 278, STRIP_BYTES = 279,
      PREDICTOR = 317, TILE_WIDTH = 322, TILE_HEIGHT = 323, TILES = 324, TILE_BYTES = 325, FORMAT = 339;
const FIELD_BYTES = {1: 1, 3: 2, 4: 4};
const PHOTOMETRIC = 262, ORIENTATION = 274, PLANAR = 284, WHITE_IS_ZERO = 0, BLACK_IS_ZERO = 1, RGB = 2;
// A file with more pages has a cycle.
const MAX_PAGES = 65536;
// No picture that the daemon takes by default has more.
const MAX_VALUES = 2 ** 28;

function fieldsOf(view, at, little) {
  const fields = new Map(), count = view.getUint16(at, little);
  for (let i = 0; i < count; ++i) {
    const entry = at + 2 + 12 * i, type = view.getUint16(entry + 2, little), length = view.getUint32(entry + 4, little);
    const bytes = FIELD_BYTES[type];
    if (!bytes || length * bytes > view.byteLength) continue;
    const begin = length * bytes <= 4 ? entry + 8 : view.getUint32(entry + 8, little);
    fields.set(view.getUint16(entry, little), Array.from({length}, (_, n) => {
      const place = begin + n * bytes;
      return bytes === 1 ? view.getUint8(place) : bytes === 2 ? view.getUint16(place, little) : view.getUint32(place, little);
    }));
  }
  return {fields, next: view.getUint32(at + 2 + 12 * count, little)};
}

// Returns `most` bytes; further ones are dropped.
function unpackLzw(bytes, most) {
  const CLEAR = 256, END = 257, out = new Uint8Array(most);
  let table = [], width = 9, bits = 0, held = 0, before = null, at = 0;
  const clear = () => {
    table = Array.from({length: 258}, (_, i) => Uint8Array.of(i & 255));
    width = 9;
    before = null;
  };
  clear();
  for (const byte of bytes) {
    held = (held << 8 | byte) & 0xffffff;
    bits += 8;
    if (bits < width) continue;
    bits -= width;
    const code = held >> bits & (1 << width) - 1;
    if (code === END || at >= most) break;
    if (code === CLEAR) {
      clear();
      continue;
    }
    if (code > table.length || (before === null && code > 255)) throw new Error("its LZW data is invalid");
    const first = code < table.length ? table[code][0] : before[0];
    if (before !== null) {
      const longer = new Uint8Array(before.length + 1);
      longer.set(before);
      longer[before.length] = first;
      table.push(longer);
    }
    before = table[code];
    out.set(before.subarray(0, most - at), at);
    at += before.length;
    // The code width grows one code early, as all writers do.
    if (table.length + 1 >= 1 << width && width < 12) ++width;
  }
  return out;
}

async function inflate(bytes, most) {
  const out = new Uint8Array(most);
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  for (let at = 0; at < most;) {
    const {done, value} = await reader.read();
    if (done) break;
    out.set(value.subarray(0, most - at), at);
    at += value.length;
  }
  return out;
}

function unpack(bytes, compression, most) {
  if (compression === 1) return bytes;
  if (compression === 5) return unpackLzw(bytes, most);
  if (compression === 8 || compression === 32946) return inflate(bytes, most);
  throw new Error(`its compression is ${compression}`);
}

// Undoes the horizontal predictor: values are stored as differences to their left neighbours of the same colour.
function addUp(view, bytes, row, samples, rows, little) {
  for (let y = 0; y < rows; ++y) {
    for (let x = samples; x < row; ++x) {
      const at = (y * row + x) * bytes, left = at - samples * bytes;
      if (bytes === 1) view.setUint8(at, view.getUint8(at) + view.getUint8(left));
      else view.setUint16(at, view.getUint16(at, little) + view.getUint16(left, little), little);
    }
  }
}

// The values of a page, row by row, the samples of a pixel side by side.
async function pageOf(file, fields, little) {
  const one = (tag, otherwise) => fields.get(tag)?.[0] ?? otherwise;
  const bits = one(BITS, 1), float = one(FORMAT, 1) === 3, predictor = one(PREDICTOR, 1);
  const width = one(WIDTH), height = one(HEIGHT), samples = one(SAMPLES, 1);
  if (!(width > 0 && height > 0) || width * height * samples > MAX_VALUES) throw new Error("its size is invalid");
  if (!(float ? bits === 32 : bits === 8 || bits === 16)) throw new Error("its pixels are not 8-bit, 16-bit or float32");
  if (samples > 1 && one(PLANAR, 1) !== 1) throw new Error("its colours are stored apart");
  if (predictor !== 1 && (predictor !== 2 || float)) throw new Error(`its predictor is ${predictor}`);
  const bytes = bits / 8, tiled = fields.has(TILES);
  const wide = tiled ? one(TILE_WIDTH) : width, high = tiled ? one(TILE_HEIGHT) : Math.min(one(ROWS, height), height);
  const offsets = fields.get(tiled ? TILES : STRIPS) ?? [], lengths = fields.get(tiled ? TILE_BYTES : STRIP_BYTES) ?? [];
  const across = Math.ceil(width / wide), down = Math.ceil(height / high);
  // Tiles may exceed the picture only by so much.
  if (!(wide > 0 && high > 0) || wide > width + 4096 || high > height + 4096 || offsets.length < across * down) {
    throw new Error("its strips or tiles are invalid");
  }
  const values = new Float32Array(width * height * samples);
  for (let part = 0; part < across * down; ++part) {
    const left = part % across * wide, top = Math.floor(part / across) * high;
    const rows = tiled ? high : Math.min(high, height - top), most = wide * rows * samples * bytes;
    const packed = new Uint8Array(file, offsets[part], lengths[part]);
    const unpacked = await unpack(packed, one(COMPRESSION, 1), most);
    if (unpacked.length < most) throw new Error("it is truncated");
    // slice() copies, so that the file's bytes are not modified.
    const view = new DataView(unpacked.slice(0, most).buffer), row = wide * samples;
    if (predictor === 2) addUp(view, bytes, row, samples, rows, little);
    const used = Math.min(wide, width - left) * samples;
    for (let y = 0; y < Math.min(rows, height - top); ++y) {
      for (let x = 0; x < used; ++x) {
        const at = (y * row + x) * bytes;
        values[((top + y) * width + left) * samples + x] =
          float ? view.getFloat32(at, little) : bytes === 1 ? view.getUint8(at) : view.getUint16(at, little);
      }
    }
  }
  return {width, height, samples, bits, float, values};
}

// Calls `each(fields, little)` for the pages until it returns false. Throws an Error with the reason if the file cannot
// be shown.
async function forPages(file, each) {
  const view = new DataView(file);
  try {
    const little = view.getUint16(0) === 0x4949;
    if (!little && view.getUint16(0) !== 0x4d4d || view.getUint16(2, little) !== 42) throw new Error("it is not a classic TIFF file");
    let pages = 0;
    for (let at = view.getUint32(4, little); at !== 0 && pages < MAX_PAGES; ++pages) {
      const {fields, next} = fieldsOf(view, at, little);
      if (await each(fields, little) === false) return;
      at = next;
    }
  } catch (error) {
    throw new Error(error instanceof RangeError ? "it is truncated" : error.message);
  }
}

// Returns one Float32Array per plane, all of the given size.
export async function planesOf(file, width, height) {
  const planes = [];
  await forPages(file, async (fields, little) => {
    const page = await pageOf(file, fields, little);
    if (page.width !== width || page.height !== height) throw new Error("its planes differ in size from the answer");
    if (page.samples !== 1) throw new Error("its pixels are not grey");
    planes.push(page.values);
  });
  return planes;
}

// Returns the first page as ImageData, without its transparency, as the daemon sees it.
export async function pictureOfTiff(file) {
  let image = null;
  await forPages(file, async (fields, little) => {
    const one = (tag, otherwise) => fields.get(tag)?.[0] ?? otherwise, kind = one(PHOTOMETRIC, 1);
    if (![WHITE_IS_ZERO, BLACK_IS_ZERO, RGB].includes(kind) || one(ORIENTATION, 1) !== 1) {
      throw new Error("it is not an upright picture in grey or RGB");
    }
    const {width, height, samples, bits, float, values} = await pageOf(file, fields, little);
    if (float) throw new Error("its pixels are not integers");
    image = new ImageData(width, height);
    const shift = bits - 8, colours = kind === RGB ? [0, 1, 2] : [0, 0, 0], turned = kind === WHITE_IS_ZERO ? 255 : 0;
    for (let i = 0; i < width * height; ++i) {
      for (let c = 0; c < 3; ++c) image.data[4 * i + c] = turned ^ values[i * samples + colours[c]] >> shift;
      image.data[4 * i + 3] = 255;
    }
    return false;
  });
  if (!image) throw new Error("it has no pages");
  return image;
}
