/** Table of thousands of rows: those that can be seen are elements; sorted by a click on a column's head. */

import { fill, h } from "./dom.js";

/**
 * @template T
 * @typedef {object} Column
 * @property {string} name
 * @property {(row: T) => any} value sorts by it
 * @property {(row: T) => any} [show] what the cell has; the value where it is left out
 * @property {string} [width] of CSS's grid
 * @property {boolean} [right] aligned
 * @property {boolean} [tail] where it is too long, its end is shown
 * @property {number} [from] width of the window, in CSS pixels, from which it is shown
 */

/**
 * @template T
 * @param {{label: string, columns: Column<T>[], href: (row: T) => string, sort: string, down?: boolean, empty?: string}} options
 */
export function table({ label, columns, href, sort, down = false, empty = "Nothing yet." }) {
  /** @type {T[]} */
  let rows = [];
  /** @type {T[]} */
  let sorted = [];
  let by = sort;
  let descending = down;
  let height = 36;
  let waiting = 0;
  const head = h("div", { class: "row head", role: "row" });
  const body = h("div", { class: "rows", role: "rowgroup" });
  const frame = h("div", { class: "table", role: "table", "aria-label": label, tabindex: "0" },
    h("div", { role: "rowgroup", class: "heads" }, head), body);
  const shown = () => columns.filter((column) => window.innerWidth >= (column.from || 0));

  const heads = () => {
    const all = shown();
    frame.style.setProperty("--columns", all.map((column) => column.width || "minmax(4.5rem, 1fr)").join(" "));
    fill(head, all.map((column) => h("div", {
      role: "columnheader", class: column.right ? "right" : "",
      "aria-sort": column.name === by ? (descending ? "descending" : "ascending") : "none",
    }, h("button", { type: "button", on: { click: () => order(column.name) } }, column.name,
      h("span", { "aria-hidden": "true" }, column.name === by ? (descending ? " ↓" : " ↑") : "")))));
  };

  /** @param {string} name */
  const order = (name) => {
    descending = name === by ? !descending : false;
    by = name;
    heads();
    arrange();
    /** @type {HTMLElement | null} */ (head.querySelector("[aria-sort$=ending] button"))?.focus();
  };

  const arrange = () => {
    const column = columns.find((each) => each.name === by) || columns[0];
    const keyed = rows.map((row) => ({ row, key: column.value(row) }));
    const missing = (/** @type {any} */ key) => key === null || key === undefined || Number.isNaN(key);
    keyed.sort((a, b) => {
      if (missing(a.key) || missing(b.key)) return Number(missing(a.key)) - Number(missing(b.key));
      const less = a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
      return descending ? -less : less;
    });
    sorted = keyed.map((each) => each.row);
    frame.setAttribute("aria-rowcount", String(sorted.length + 1));
    draw();
  };

  const draw = () => {
    waiting = 0;
    const held = /** @type {HTMLElement | null} */ (document.activeElement?.closest(".table") === frame ? document.activeElement : null);
    const place = held?.closest(".row")?.getAttribute("aria-rowindex");
    const first = Math.max(0, Math.floor(frame.scrollTop / height) - 8);
    const last = Math.min(sorted.length, first + Math.ceil((frame.clientHeight || 600) / height) + 16);
    body.style.setProperty("height", `${sorted.length * height}px`);
    const all = shown();
    if (!sorted.length) {
      fill(body, h("p", { class: "empty" }, empty));
      body.style.removeProperty("height");
      return;
    }
    fill(body, sorted.slice(first, last).map((row, index) => h("div", {
      class: "row", role: "row", "aria-rowindex": first + index + 2,
      style: { transform: `translateY(${(first + index) * height}px)` },
    }, all.map((column, number) => {
      const content = (column.show || column.value)(row);
      return h("div", { role: "cell", class: column.right ? "right" : "" },
        number === 0 ? h("a", { href: href(row), class: column.tail ? "tail" : null, tabindex: first + index === 0 || held ? "0" : "-1" }, h("bdi", {}, content)) : content);
    }))));
    if (place && Number(place) > 1) focus(Number(place) - 2, true);
  };
  const soon = () => { waiting ||= requestAnimationFrame(draw); };

  /** @param {number} index @param {boolean} [still] */
  const focus = (index, still = false) => {
    const to = Math.max(0, Math.min(sorted.length - 1, index));
    if (!still) {
      const top = to * height;
      const room = frame.clientHeight - 2 * height;
      if (top < frame.scrollTop) frame.scrollTop = top;
      if (top > frame.scrollTop + room) frame.scrollTop = top - room;
      draw();
    }
    const link = /** @type {HTMLElement | null} */ (body.querySelector(`[aria-rowindex="${to + 2}"] a`));
    link?.focus({ preventScroll: true });
  };

  frame.addEventListener("scroll", soon, { passive: true });
  frame.addEventListener("keydown", (event) => {
    const at = Number(document.activeElement?.closest(".row")?.getAttribute("aria-rowindex") || 1) - 2;
    /** @type {Record<string, number>} */
    const places = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: sorted.length - 1, PageDown: at + 10, PageUp: at - 10 };
    if (!(event.key in places) || !sorted.length) return;
    event.preventDefault();
    focus(places[event.key]);
  });
  body.addEventListener("click", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.closest("a, button, input, label")) return;
    /** @type {HTMLElement | null} */ (target.closest(".row")?.querySelector("a"))?.click();
  });
  new ResizeObserver(() => {
    height = parseFloat(getComputedStyle(frame).getPropertyValue("--row")) || height;
    heads();
    soon();
  }).observe(frame);
  heads();
  return {
    element: frame,
    /** @param {T[]} all */
    set: (all) => {
      rows = all;
      arrange();
    },
  };
}
