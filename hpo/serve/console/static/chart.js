/** Chart on a canvas: sharp on any screen, drawn a few milliseconds at a time, so that thousands of marks hold nothing up. */

import { fill, h } from "./dom.js";
import { duration, number } from "./format.js";

const SLICE = 8; // Milliseconds of drawing in one frame.
export const HUES = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"];

/** @typedef {{left: number, top: number, width: number, height: number}} Box */
/** @typedef {(name: string) => string} Ink a colour of the styles by its variable */

/**
 * @param {object} options
 * @param {string} options.label
 * @param {number} options.height in CSS pixels
 * @param {number} [options.left] room for labels
 * @param {(context: CanvasRenderingContext2D, box: Box, ink: Ink) => Iterable<void>} options.draw yields between marks
 * @param {(x: number, y: number, box: Box) => any} [options.find] what is at a place, null where nothing is
 * @param {(context: CanvasRenderingContext2D, box: Box, found: any, ink: Ink) => void} [options.mark]
 * @param {(found: any) => string} [options.tell] of the tip
 * @param {(found: any) => void} [options.open] at a click
 */
export function chart({ label, height, left = 56, draw, find, mark, tell, open }) {
  const base = /** @type {HTMLCanvasElement} */ (h("canvas", { role: "img", "aria-label": label }));
  const over = /** @type {HTMLCanvasElement} */ (h("canvas", { "aria-hidden": "true" }));
  const tip = h("div", { class: "tip", hidden: true });
  const frame = h("div", { class: "chart", style: { height: `${height}px` } }, base, over, tip);
  /** @type {Map<string, string>} */
  let inks = new Map();
  let high = height;
  let run = 0;
  let spent = 0;
  let last = 0;
  let timer = 0;
  let asked = 0;
  /** @type {any} */
  let shown = null;

  /** @type {Ink} */
  const ink = (name) => {
    let found = inks.get(name);
    if (found === undefined) {
      // A colour as `light-dark()` comes to it here, which a canvas does not know.
      tip.style.setProperty("outline-color", `var(${name})`);
      found = getComputedStyle(tip).outlineColor;
      inks.set(name, found);
    }
    return found;
  };
  const box = () => ({ left, top: 10, width: Math.max(10, frame.clientWidth - left - 12), height: high - 38 });
  const sized = (/** @type {HTMLCanvasElement} */ canvas) => {
    const ratio = window.devicePixelRatio || 1;
    const [wide, tall] = [Math.round(frame.clientWidth * ratio), Math.round(high * ratio)];
    if (canvas.width !== wide || canvas.height !== tall) Object.assign(canvas, { width: wide, height: tall });
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, frame.clientWidth, high);
    context.font = "12px system-ui, sans-serif";
    return context;
  };

  const paint = () => {
    timer = 0;
    if (!frame.isConnected || !frame.clientWidth) return;
    last = performance.now();
    spent = 0;
    run += 1;
    const own = run;
    const steps = draw(sized(base), box(), ink)[Symbol.iterator]();
    const go = () => {
      if (own !== run || !frame.isConnected) return;
      const began = performance.now();
      let done = false;
      while (!done && performance.now() - began < SLICE) done = Boolean(steps.next().done);
      spent += performance.now() - began;
      if (done) point();
      else requestAnimationFrame(go);
    };
    go();
  };
  const point = () => {
    const context = sized(over);
    if (shown && mark) mark(context, box(), shown.found, ink);
  };
  const soon = () => {
    timer ||= window.setTimeout(paint, Math.max(0, last + Math.max(200, 5 * spent) - performance.now()));
  };

  const seek = (/** @type {number} */ x, /** @type {number} */ y) => {
    const found = find ? find(x, y, box()) : null;
    shown = found === null ? null : { found };
    tip.hidden = shown === null;
    if (shown) {
      fill(tip, tell ? tell(found) : "");
      tip.style.setProperty("left", `${Math.max(0, Math.min(x + 14, frame.clientWidth - tip.offsetWidth - 4))}px`);
      tip.style.setProperty("top", `${Math.max(0, y > high / 2 ? y - tip.offsetHeight - 10 : y + 14)}px`);
    }
    over.style.setProperty("cursor", shown && open ? "pointer" : "default");
    point();
  };
  over.addEventListener("pointermove", (event) => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(() => seek(event.offsetX, event.offsetY));
  });
  over.addEventListener("pointerleave", () => {
    cancelAnimationFrame(asked);
    shown = null;
    tip.hidden = true;
    point();
  });
  over.addEventListener("click", (event) => {
    if (event.pointerType !== "touch") seek(event.offsetX, event.offsetY);
    if (shown && open) open(shown.found);
  });
  new ResizeObserver(soon).observe(frame);
  const recolour = () => {
    if (!frame.isConnected) return window.removeEventListener("scheme", recolour);
    inks = new Map();
    return soon();
  };
  window.addEventListener("scheme", recolour);
  return {
    element: frame,
    redraw: soon,
    /** @param {number} tall in CSS pixels */
    resize: (tall) => {
      if (tall === high) return;
      high = tall;
      frame.style.setProperty("height", `${high}px`);
    },
    describe: (/** @type {string} */ text) => base.setAttribute("aria-label", text),
  };
}

const TIMES = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 43_200, 86_400]; // Seconds.

/** Even steps between two values, or between two times in seconds. @param {number} low @param {number} high @param {number} [most] @param {boolean} [time] */
export function ticks(low, high, most = 5, time = false) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = [1, 2, 5, 10].map((each) => each * power);
  const step = (time && TIMES.find((each) => rough > 0.5 && each >= rough)) || steps.find((each) => each >= rough) || rough;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

/**
 * Axes with lines and labels.
 * @param {CanvasRenderingContext2D} context @param {Box} box @param {Ink} ink
 * @param {{x: [number, number], y: [number, number], nameX: string, showX?: (value: number) => string, showY?: (value: number) => string}} scale
 */
export function axes(context, box, ink, { x, y, nameX, showX = (v) => number(v, 4), showY = (v) => number(v, 4) }) {
  const [toX, toY] = scales(box, x, y);
  context.lineWidth = 1;
  context.strokeStyle = ink("--line");
  context.fillStyle = ink("--quiet");
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const value of ticks(...y, 5, showY === duration)) {
    const at = Math.round(toY(value)) + 0.5;
    context.beginPath();
    context.moveTo(box.left, at);
    context.lineTo(box.left + box.width, at);
    context.stroke();
    context.fillText(showY(value), box.left - 8, at);
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  const free = box.left + box.width - (nameX ? context.measureText(nameX).width + 20 : 0);
  for (const value of ticks(...x, Math.max(2, box.width / 110), showX === duration)) {
    if (toX(value) <= free) context.fillText(showX(value), toX(value), box.top + box.height + 7);
  }
  context.textAlign = "right";
  context.fillText(nameX, box.left + box.width, box.top + box.height + 7);
}

/**
 * @param {Box} box @param {[number, number]} x @param {[number, number]} y
 * @returns {[(value: number) => number, (value: number) => number]}
 */
export function scales(box, x, y) {
  return [
    (value) => box.left + ((value - x[0]) / (x[1] - x[0] || 1)) * box.width,
    (value) => box.top + box.height - ((value - y[0]) / (y[1] - y[0] || 1)) * box.height,
  ];
}
