/** What a JSON schema says of one value: references, null as "not given", choices, and text as a value. */

/** Takes anything. */
export const any = {};

/** @param {any} root @param {any} schema @returns {any} without references, and without null as a choice */
export function resolved(root, schema) {
  if (schema.$ref) return { ...root.$defs[schema.$ref.split("/").pop()], ...without(schema, "$ref") };
  if (schema.oneOf && !schema.discriminator) return without(schema, "oneOf");
  if (!schema.anyOf) return schema;
  const left = schema.anyOf.filter((/** @type {any} */ each) => each.type !== "null");
  if (left.length !== 1) return without(schema, "anyOf");
  return { ...resolved(root, left[0]), ...without(schema, "anyOf") };
}

/** @param {any} schema @param {string} name */
const without = (schema, name) => Object.fromEntries(Object.entries(schema).filter(([key]) => key !== name));

/** @param {any} root @param {any} schema a choice by one property @returns {{name: string, schema: any}[]} */
export const options = (root, schema) => Object.entries(schema.discriminator.mapping).map(([name, ref]) => ({ name, schema: resolved(root, { $ref: ref }) }));

/** @param {any} schema of an object @returns {any} what it begins with */
export const choice = (schema) => (schema.oneOf ? { [schema.discriminator.propertyName]: Object.keys(schema.discriminator.mapping)[0] } : {});

/** @param {any} schema @param {string} text @returns {any} */
export function scalar(schema, text) {
  if (schema.type === "string") return text;
  if (schema.type === "integer" || schema.type === "number") return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** @param {any} value @returns {string} */
export const shown = (value) => (value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value));
