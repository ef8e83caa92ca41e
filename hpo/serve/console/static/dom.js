/** Elements from tag, attributes and children; every text goes in as text, never as HTML. */

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] `class`, `on` (events by name), `style` (properties by name), else attributes
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [kind, call] of Object.entries(value)) element.addEventListener(kind, call);
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else if (name === "value") /** @type {any} */ (element).value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** @param {Element} element @param {(Child | Child[])[]} children */
export function append(element, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** @param {Element} element @param {...(Child | Child[])} children */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/**
 * Text of a program, with a button that copies it; where a browser does not let the page copy, it is selected.
 * @param {string} text
 * @param {string} label
 */
export function copied(text, label) {
  const code = h("code", {}, text);
  const button = h("button", { type: "button", on: { click: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection()?.selectAllChildren(code);
      button.textContent = "Selected: press Ctrl+C";
    }
    window.setTimeout(() => { button.textContent = "Copy"; }, 2000);
  } } }, "Copy");
  return h("div", { class: "copied" }, button, h("pre", { class: "log", tabindex: "0", "aria-label": label }, code));
}

/**
 * Calls at most once in a time, and once more after the last request.
 * @param {() => void} call
 * @param {number} milliseconds
 */
export function throttled(call, milliseconds) {
  let timer = 0;
  let last = -Infinity;
  return () => {
    if (timer) return;
    timer = window.setTimeout(() => {
      timer = 0;
      last = performance.now();
      call();
    }, Math.max(0, last + milliseconds - performance.now()));
  };
}
