/** Dialog that asks before something is done, does it, and stays with the message where it fails. */

import { fill, h } from "../dom.js";

/** Why nothing goes for a token that may look. */
export const LOOKS = "your token may look, not act";

/**
 * @typedef {object} Question
 * @property {string} title
 * @property {string} text what happens
 * @property {string} button
 * @property {boolean} [danger]
 * @property {HTMLElement} [body] more to fill in
 * @property {string} [typed] has to be typed before the button works
 * @property {() => Promise<unknown>} act does it; a text that it gives says what came of it, and stays
 */

/** @param {Question} question */
export function ask(question) {
  const message = h("p", { class: "problem", role: "alert" });
  const button = /** @type {HTMLButtonElement} */ (h("button", { class: question.danger ? "danger" : "primary" }, question.button));
  const cancel = /** @type {HTMLButtonElement} */ (h("button", { type: "button", on: { click: () => dialog.close() } }, "Cancel"));
  const typed = /** @type {HTMLInputElement} */ (h("input", { autocomplete: "off", spellcheck: "false", on: { input: () => check() } }));
  const check = () => { button.disabled = Boolean(question.typed) && typed.value !== question.typed; };
  let busy = false;
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (busy || button.disabled) return;
    busy = button.disabled = true;
    button.textContent = "One moment…";
    fill(message);
    try {
      const told = await question.act();
      if (typeof told === "string") {
        fill(message, told);
        message.className = "good";
        button.hidden = true;
        cancel.textContent = "Close";
      } else dialog.close();
    } catch (error) {
      fill(message, /** @type {Error} */ (error).message);
    }
    busy = false;
    button.textContent = question.button;
    check();
  };
  const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { class: "ask", "aria-label": question.title },
    h("form", { on: { submit: send } }, h("h2", {}, question.title), h("p", { class: "quiet" }, question.text), question.body,
      question.typed && h("label", { class: "field" }, h("span", {}, "Type ", h("strong", {}, question.typed), " to go on"), typed),
      message, h("div", { class: "buttons" }, cancel, button))));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("cancel", (event) => { if (busy) event.preventDefault(); });
  document.body.append(dialog);
  check();
  dialog.showModal();
}

/**
 * A button, or the reason why it does not go.
 * @param {string} label
 * @param {string} reason empty where it goes
 * @param {() => void} click
 * @param {string} [kind] its class
 */
export function actButton(label, reason, click, kind = "") {
  return h("button", { type: "button", class: kind, "aria-disabled": reason ? "true" : null, title: reason || null,
    "aria-label": reason ? `${label}: ${reason}` : null, on: { click: () => { if (!reason) click(); } } }, label);
}
