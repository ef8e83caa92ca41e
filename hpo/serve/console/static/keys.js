/** Keyboard shortcuts, and the dialog that lists them. */

import { h } from "./dom.js";

const SHORTCUTS = [
  ["/", "go to the search"],
  ["g", "the list of jobs"],
  ["u", "one level up: from a trial to its job, from a job to the list"],
  ["t", "light, dark or as the system"],
  ["↑ ↓", "from row to row of a table"],
  ["Home End", "first and last row"],
  ["Enter", "open the row"],
  ["Esc", "leave the search, close a dialog"],
  ["?", "this list"],
];

/** @param {HTMLElement} button that opens the list */
export function keys(button) {
  const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keyboard"),
    h("dl", { class: "keys" }, ...SHORTCUTS.flatMap(([key, what]) => [
      h("dt", {}, ...key.split(" ").map((each) => h("kbd", {}, each))), h("dd", {}, what)])),
    h("form", { method: "dialog" }, h("button", {}, "Close"))));
  document.body.append(dialog);
  button.addEventListener("click", () => dialog.showModal());
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    const writing = target.matches("input, textarea, select, [contenteditable]");
    if (event.key === "Escape" && target.matches("input[type=search]")) target.blur();
    if (writing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    /** @type {Record<string, () => void>} */
    const acts = {
      "/": () => /** @type {HTMLElement | null} */ (document.querySelector("input[type=search]"))?.focus(),
      g: () => { location.hash = "#/jobs"; },
      u: () => { location.hash = location.hash.includes("/trials/") ? location.hash.replace(/\/trials\/.*/, "") : "#/jobs"; },
      t: () => document.getElementById("theme")?.click(),
      "?": () => dialog.showModal(),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
