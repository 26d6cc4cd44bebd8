// Reads TIFF volumes, which browsers do not support: grey pages of 8 or 16 bits or float32, one per plane, in strips or
// tiles, uncompressed or compressed with LZW or deflate. The daemon accepts further kinds of files; for those the page
// only lacks the input's planes.

const WIDTH = 256, HEIGHT = 257, BITS = 258, COMPRESSION = 259, STRIPS = 273, SAMPLES = 277, ROWS = 278, STRIP_BYTES = 279,
      PREDICTOR = 317, TILE_WIDTH = 322, TILE_HEIGHT = 323, TILES = 324, TILE_BYTES = 325, FORMAT = 339;
const FIELD_BYTES = {1: 1, 3: 2, 4: 4};
// A file with more pages has a cycle.
const MOST_PAGES = 65536;

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

// Undoes the horizontal predictor: values are stored as differences to their left neighbours.
function addUp(view, bytes, row, rows, little) {
  for (let y = 0; y < rows; ++y) {
    for (let x = 1; x < row; ++x) {
      const at = (y * row + x) * bytes;
      if (bytes === 1) view.setUint8(at, view.getUint8(at) + view.getUint8(at - 1));
      else view.setUint16(at, view.getUint16(at, little) + view.getUint16(at - 2, little), little);
    }
  }
}

async function pageOf(file, fields, little, width, height) {
  const one = (tag, otherwise) => fields.get(tag)?.[0] ?? otherwise;
  const bits = one(BITS, 1), float = one(FORMAT, 1) === 3, predictor = one(PREDICTOR, 1);
  if (one(WIDTH) !== width || one(HEIGHT) !== height) throw new Error("its planes differ in size from the answer");
  if (one(SAMPLES, 1) !== 1 || !(float ? bits === 32 : bits === 8 || bits === 16)) throw new Error("its pixels are not 8-bit, 16-bit or float32 grey");
  if (predictor !== 1 && (predictor !== 2 || float)) throw new Error(`its predictor is ${predictor}`);
  const bytes = bits / 8, tiled = fields.has(TILES);
  const wide = tiled ? one(TILE_WIDTH) : width, high = tiled ? one(TILE_HEIGHT) : Math.min(one(ROWS, height), height);
  const offsets = fields.get(tiled ? TILES : STRIPS) ?? [], lengths = fields.get(tiled ? TILE_BYTES : STRIP_BYTES) ?? [];
  const across = Math.ceil(width / wide), down = Math.ceil(height / high);
  // Tiles may exceed the picture only by so much.
  if (!(wide > 0 && high > 0) || wide > width + 4096 || high > height + 4096 || offsets.length < across * down) {
    throw new Error("its strips or tiles are invalid");
  }
  const plane = new Float32Array(width * height);
  for (let part = 0; part < across * down; ++part) {
    const left = part % across * wide, top = Math.floor(part / across) * high;
    const rows = tiled ? high : Math.min(high, height - top), most = wide * rows * bytes;
    const packed = new Uint8Array(file, offsets[part], lengths[part]);
    const values = await unpack(packed, one(COMPRESSION, 1), most);
    if (values.length < most) throw new Error("it is truncated");
    // slice() copies, so that the file's bytes are not modified.
    const view = new DataView(values.slice(0, most).buffer);
    if (predictor === 2) addUp(view, bytes, wide, rows, little);
    for (let y = 0; y < Math.min(rows, height - top); ++y) {
      for (let x = 0; x < Math.min(wide, width - left); ++x) {
        const at = (y * wide + x) * bytes;
        plane[(top + y) * width + left + x] =
          float ? view.getFloat32(at, little) : bytes === 1 ? view.getUint8(at) : view.getUint16(at, little);
      }
    }
  }
  return plane;
}

// Returns one Float32Array per plane, all of the given size. Throws an Error with the reason if the file cannot be
// shown.
export async function planesOf(file, width, height) {
  const view = new DataView(file);
  try {
    const little = view.getUint16(0) === 0x4949;
    if (!little && view.getUint16(0) !== 0x4d4d || view.getUint16(2, little) !== 42) throw new Error("it is not a classic TIFF file");
    const planes = [];
    for (let at = view.getUint32(4, little); at !== 0 && planes.length < MOST_PAGES;) {
      const {fields, next} = fieldsOf(view, at, little);
      planes.push(await pageOf(file, fields, little, width, height));
      at = next;
    }
    return planes;
  } catch (error) {
    throw new Error(error instanceof RangeError ? "it is truncated" : error.message);
  }
}
