/** Form of a JSON schema: nested groups, choices, maps and lists over one plain value, which holds only what is given. */

import { fill, h } from "../dom.js";
import { any, choice, options, resolved, scalar, shown } from "./schema.js";

/**
 * @typedef {object} Context
 * @property {any} schema the whole one, whose $defs are referred to
 * @property {any} value the whole one
 * @property {(path: Path, value: any) => void} changed told of each change; undefined is a value that is gone
 */

/** @typedef {(string | number)[]} Path */

/** @param {Context} context @param {Path} path */
const read = (context, path) => path.reduce((value, key) => value?.[key], context.value);

/** @param {Context} context @param {Path} path @param {any} value undefined takes it out */
function write(context, path, value) {
  let parent = context.value;
  path.slice(0, -1).forEach((key, place) => { parent = parent[key] ??= typeof path[place + 1] === "number" ? [] : {}; });
  const last = path[path.length - 1];
  if (value !== undefined) parent[last] = value;
  else if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete parent[last];
  context.changed(path, value);
}

/** @param {Context} context */
export const schemaForm = (context) => h("div", { class: "schema" }, group(context, context.schema, []));

/**
 * What is needed or given stands open; all else is under one line that opens.
 * @param {Context} context @param {any} schema of an object @param {Path} path
 */
function group(context, schema, path) {
  const required = new Set(schema.required || []);
  const value = read(context, path) || {};
  const open = [], more = [];
  for (const [name, each] of Object.entries(schema.properties || {})) {
    if (each.const !== undefined) continue;
    (required.has(name) || value[name] !== undefined ? open : more).push(field(context, each, [...path, name], name, required.has(name)));
  }
  return h("div", { class: "group" }, open, more.length ? h("details", {}, h("summary", {}, `${more.length} more ${more.length === 1 ? "option" : "options"}`), more) : null);
}

/** @param {Context} context @param {any} given @param {Path} path @param {string} label @param {boolean} required @returns {HTMLElement} */
function field(context, given, path, label, required) {
  const schema = resolved(context.schema, given);
  const place = h("div", { class: "slot", "data-field": path.join(".") });
  const again = () => fill(place, draw());
  const remove = () => {
    write(context, path, undefined);
    again();
  };
  const draw = () => {
    const value = read(context, path);
    const nested = schema.oneOf?.length || schema.type === "object" || schema.type === "array";
    if (!nested) return h("div", { class: "field" }, simple(context, schema, path, label, required), h("p", { class: "problem" }));
    const told = schema.description ? h("p", { class: "hint" }, schema.description) : null;
    if (value === undefined && !required) {
      return h("div", { class: "field line" }, h("div", {}, h("span", { class: "label" }, label), told),
        h("button", { type: "button", "aria-label": `Add ${label}`, on: { click: () => {
          write(context, path, schema.type === "array" ? [] : choice(schema));
          again();
          /** @type {HTMLElement | null} */ (place.querySelector("input, select, button"))?.focus();
        } } }, "Add"), h("p", { class: "problem" }));
    }
    if (value === undefined) write(context, path, schema.type === "array" ? [] : choice(schema));
    return h("fieldset", {}, h("legend", {}, label), required ? null : h("button", { type: "button", class: "remove", "aria-label": `Remove ${label}`, on: { click: remove } }, "Remove"),
      told, h("p", { class: "problem" }), inside(context, schema, path, again));
  };
  again();
  return place;
}

/** @param {Context} context @param {any} schema @param {Path} path @param {() => void} again */
function inside(context, schema, path, again) {
  if (schema.oneOf) return union(context, schema, path, again);
  if (schema.properties) return group(context, schema, path);
  return entries(context, schema, path, again);
}

/** @param {Context} context @param {any} schema @param {Path} path @param {() => void} again */
function union(context, schema, path, again) {
  const kinds = options(context.schema, schema);
  const key = schema.discriminator.propertyName;
  const chosen = kinds.find((each) => each.name === read(context, path)?.[key]) || kinds[0];
  const select = h("select", { on: { change: (/** @type {any} */ event) => {
    const kept = read(context, path) || {};
    const next = kinds.find((each) => each.name === event.target.value) || kinds[0];
    const names = Object.keys(next.schema.properties || {});
    write(context, path, { ...Object.fromEntries(Object.entries(kept).filter(([name]) => names.includes(name))), [key]: next.name });
    again();
  } } }, kinds.map((each) => h("option", { value: each.name, selected: each === chosen }, each.name)));
  return h("div", {}, h("label", { class: "field" }, h("span", { class: "label" }, key), select), group(context, chosen.schema, path));
}

/** @param {Context} context @param {any} schema of a map or a list @param {Path} path @param {() => void} again */
function entries(context, schema, path, again) {
  const list = schema.type === "array";
  const each = (list ? schema.items : schema.additionalProperties) || any;
  const kind = resolved(context.schema, each === true ? any : each);
  const begun = () => (kind.type === "array" ? [] : kind.oneOf || kind.type === "object" ? choice(kind) : kind.type === "integer" || kind.type === "number" ? 0 : "");
  const value = read(context, path) || (list ? [] : {});
  const rows = Object.keys(value).map((name) => {
    const place = [...path, list ? Number(name) : name];
    const drop = h("button", { type: "button", class: "remove", "aria-label": `Remove ${name}`, on: { click: () => { write(context, place, undefined); again(); } } }, "×");
    return h("div", { class: "entry" }, field(context, kind, place, list ? `${Number(name) + 1}` : name, true), drop);
  });
  const name = /** @type {HTMLInputElement} */ (h("input", { placeholder: "name", "aria-label": `name of a new entry of ${path.join(".")}`, spellcheck: "false",
    on: { keydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") { event.preventDefault(); add(); } } } }));
  const add = () => {
    if (!list && (!name.value || Object.hasOwn(value, name.value))) return name.focus();
    write(context, [...path, list ? value.length : name.value], begun());
    again();
  };
  return h("div", { class: "entries" }, rows, h("div", { class: "adding" }, list ? null : name, h("button", { type: "button", on: { click: add } }, "Add")));
}

/** @param {Context} context @param {any} schema @param {Path} path @param {string} label @param {boolean} required */
function simple(context, schema, path, label, required) {
  const value = read(context, path);
  const standard = schema.default;
  /** @type {HTMLElement} */
  let control;
  if (schema.type === "boolean" && standard !== null) {
    control = h("input", { type: "checkbox", checked: value ?? standard ?? false, on: { change: (/** @type {any} */ event) =>
      write(context, path, event.target.checked === standard ? undefined : event.target.checked) } });
  } else if (schema.type === "boolean") {
    control = h("select", { on: { change: (/** @type {any} */ event) => write(context, path, event.target.value === "" ? undefined : event.target.value === "true") } },
      ["", "true", "false"].map((each) => h("option", { value: each, selected: each === shown(value) }, each || "—")));
  } else if (schema.enum) {
    const none = standard === undefined || standard === null ? "—" : `${standard} (default)`;
    control = h("select", { on: { change: (/** @type {any} */ event) => write(context, path, event.target.value || undefined) } },
      required && value !== undefined ? null : h("option", { value: "" }, none), schema.enum.map((/** @type {any} */ each) => h("option", { value: each, selected: each === value }, String(each))));
  } else {
    control = h("input", { value: shown(value), placeholder: shown(standard), spellcheck: "false", autocomplete: "off",
      inputmode: schema.type === "integer" ? "numeric" : schema.type === "number" ? "decimal" : null,
      on: { input: (/** @type {any} */ event) => write(context, path, event.target.value === "" ? undefined : scalar(schema, event.target.value)) } });
  }
  return h("label", {}, h("span", { class: "label" }, label, required ? h("span", { class: "needed" }, " needed") : null), control,
    schema.description ? h("span", { class: "hint" }, schema.description) : null);
}

/**
 * Puts messages at their fields, or at the nearest group that is shown.
 * @param {Element} form @param {{field: string, message: string}[]} problems
 */
export function tell(form, problems) {
  for (const each of form.querySelectorAll(".problem")) fill(each);
  let first = null;
  for (const { field: where, message } of problems) {
    const parts = where ? where.split(".") : [];
    for (let end = parts.length; end > 0; end -= 1) {
      const slot = [...form.querySelectorAll("[data-field]")].find((each) => /** @type {HTMLElement} */ (each).dataset.field === parts.slice(0, end).join("."));
      const line = slot?.querySelector(".problem");
      if (!slot || !line) continue;
      for (let up = slot.closest("details"); up; up = up.parentElement?.closest("details") || null) up.open = true;
      fill(line, line.textContent ? `${line.textContent}; ${message}` : message);
      first ??= slot;
      break;
    }
  }
  if (first) /** @type {HTMLElement | null} */ (first.querySelector("input, select, button"))?.focus();
}
