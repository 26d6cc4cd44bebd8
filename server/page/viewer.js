// Shows a picture on a canvas of the screen's own pixels, under a view that the wheel, two fingers, dragging and keys
// change. It knows nothing of answers: `paint(context, view)` draws, in CSS pixels.

const MAX_SCALE = 64, STEP = 1.25, CLICK = 5;

export class Viewer {
  canvas;
  told;
  size = null;
  view = null;
  pointers = new Map();
  moved = 0;

  // `told`: paint(context, view), hover(point or null), press(point), step(+1 or -1), and `keys`, functions by the key that
  // calls them. Points are in the picture's pixels.
  constructor(canvas, told) {
    [this.canvas, this.told] = [canvas, told];
    canvas.addEventListener("wheel", (event) => this.#wheel(event), {passive: false});
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => this.#up(event));
    canvas.addEventListener("pointerleave", () => told.hover(null));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#resize()).observe(canvas);
  }

  // A picture of this size comes to be shown, or none. The view stays if the size does.
  show(size) {
    const same = size && this.size && size.width === this.size.width && size.height === this.size.height;
    this.size = size;
    this.canvas.hidden = !size;
    if (!size || same) return this.draw();
    this.canvas.style.aspectRatio = `${size.width} / ${size.height}`;
    this.fit();
  }

  #box() {
    return {width: this.canvas.clientWidth, height: this.canvas.clientHeight};
  }

  #fitting() {
    const {width, height} = this.#box();
    return Math.min(width / this.size.width, height / this.size.height) || 1;
  }

  isFit() {
    return !this.view || this.view.scale <= this.#fitting() * 1.001;
  }

  fit() {
    if (!this.size) return;
    const {width, height} = this.#box(), scale = this.#fitting();
    this.#look({scale, x: (width - scale * this.size.width) / 2, y: (height - scale * this.size.height) / 2});
  }

  // One pixel of the picture is one of the screen.
  real() {
    this.zoom(1 / devicePixelRatio / this.view.scale);
  }

  // Keeps the point at (x, y) of the canvas, or its centre, where it is.
  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    if (!this.view) return;
    const {view} = this, least = Math.min(this.#fitting(), 1 / devicePixelRatio);
    const scale = Math.min(MAX_SCALE, Math.max(least, view.scale * factor)), grown = scale / view.scale;
    this.#look({scale, x: x - grown * (x - view.x), y: y - grown * (y - view.y)});
  }

  #pan(x, y) {
    this.#look({...this.view, x: this.view.x + x, y: this.view.y + y});
  }

  // Keeps the picture on the canvas: centred where it is smaller, without a margin where it is larger.
  #look({scale, x, y}) {
    const {width, height} = this.#box(), wide = scale * this.size.width, high = scale * this.size.height;
    const hold = (at, size, room) => size <= room ? (room - size) / 2 : Math.min(0, Math.max(room - size, at));
    this.view = {scale, x: hold(x, wide, width), y: hold(y, high, height), width, height};
    // A finger scrolls the page as long as there is nothing to move here.
    this.canvas.style.touchAction = this.isFit() ? "pan-y" : "none";
    this.draw();
  }

  #resize() {
    if (!this.size || this.canvas.hidden) return;
    const fitted = !this.view || Math.abs(this.view.scale * this.size.width - this.view.width) < 2 ||
      Math.abs(this.view.scale * this.size.height - this.view.height) < 2;
    if (fitted) this.fit();
    else this.#look(this.view);
  }

  draw() {
    if (!this.size || !this.view) return;
    const {canvas} = this, {width, height} = this.#box(), context = canvas.getContext("2d");
    const [wide, high] = [width, height].map((side) => Math.max(1, Math.round(side * devicePixelRatio)));
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.globalAlpha = 1;
    context.clearRect(0, 0, width, height);
    this.told.paint(context, this.view);
  }

  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  }

  // Null outside of the picture.
  #point(event) {
    if (!this.view) return null;
    const at = this.#place(event), x = (at.x - this.view.x) / this.view.scale, y = (at.y - this.view.y) / this.view.scale;
    return x >= 0 && y >= 0 && x < this.size.width && y < this.size.height ? {x, y} : null;
  }

  // Turned down where the whole picture is seen, the wheel scrolls the page.
  #wheel(event) {
    if (!this.view || (event.deltaY > 0 && this.isFit())) return;
    event.preventDefault();
    const {x, y} = this.#place(event);
    this.zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.002)), x, y);
  }

  #down(event) {
    this.pointers.set(event.pointerId, this.#place(event));
    this.canvas.setPointerCapture(event.pointerId);
    if (this.pointers.size === 1) this.moved = 0;
  }

  #move(event) {
    const before = this.pointers.get(event.pointerId), now = this.#place(event);
    if (!before) return this.told.hover(this.#point(event));
    this.moved += Math.hypot(now.x - before.x, now.y - before.y);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, now);
    if (!this.view) return;
    if (other) {
      const far = (one) => Math.max(1, Math.hypot(one.x - other.x, one.y - other.y));
      this.zoom(far(now) / far(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
      this.#pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    } else if (this.moved > CLICK) {
      this.#pan(now.x - before.x, now.y - before.y);
    }
  }

  #up(event) {
    const alone = this.pointers.size === 1;
    if (!this.pointers.delete(event.pointerId)) return;
    if (event.type === "pointerup" && alone && this.moved <= CLICK) this.told.press(this.#point(event));
    if (!alone) this.moved = Infinity;
  }

  #key(event) {
    if (!this.view || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      "+": () => this.zoom(STEP), "=": () => this.zoom(STEP), "-": () => this.zoom(1 / STEP), "0": () => this.fit(),
      "1": () => this.real(), f: () => this.fullScreen(), ArrowRight: () => this.told.step(1),
      ArrowDown: () => this.told.step(1), ArrowLeft: () => this.told.step(-1), ArrowUp: () => this.told.step(-1),
      ...this.told.keys,
    };
    const part = this.#box().width / 8;
    if (event.shiftKey) {
      Object.assign(keys, {ArrowRight: () => this.#pan(-part, 0), ArrowLeft: () => this.#pan(part, 0),
                           ArrowDown: () => this.#pan(0, -part), ArrowUp: () => this.#pan(0, part)});
    }
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.canvas.closest("figure").requestFullscreen?.();
  }
}
