/** Light and dark: as the system has it, or as one has chosen. */

import { fill } from "./dom.js";

const KEY = "warmband-scheme";
const CHOICES = ["", "light", "dark"];
const WORDS = { "": "◐ System", light: "☀ Light", dark: "☾ Dark" };

/** @param {HTMLElement} button */
export function theme(button) {
  let chosen = localStorage.getItem(KEY) || "";
  const show = () => {
    if (chosen) document.documentElement.dataset.scheme = chosen;
    else delete document.documentElement.dataset.scheme;
    fill(button, WORDS[/** @type {keyof typeof WORDS} */ (chosen)] || WORDS[""]);
    button.setAttribute("aria-label", `Colours: ${chosen || "as the system"}`);
    window.dispatchEvent(new Event("scheme"));
  };
  button.addEventListener("click", () => {
    chosen = CHOICES[(CHOICES.indexOf(chosen) + 1) % CHOICES.length];
    localStorage.setItem(KEY, chosen);
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.dispatchEvent(new Event("scheme")));
  show();
}
