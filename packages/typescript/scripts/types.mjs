// Writes `src/types.ts` from what `hearback schema` prints: `node scripts/types.mjs PROGRAM`. With `--check` it writes
// nothing and fails if the file is not what it would write.
//
// It knows the part of JSON Schema that hearback uses, and stops at anything else rather than leave it out.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const FILE = fileURLToPath(new URL("../src/types.ts", import.meta.url));

const KNOWN = new Set([
  "$ref", "additionalProperties", "anyOf", "const", "default", "description", "format", "items", "maximum", "minimum",
  "oneOf", "properties", "required", "type",
]);
const SIMPLE = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

function comment(text, indent) {
  if (text === undefined) return "";
  const lines = text.replaceAll("*/", "* /").split("\n");
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}

function reference(ref) {
  const name = /^#\/\$defs\/(\w+)$/.exec(ref)?.[1];
  if (name === undefined) throw new Error(`a reference that is not to a definition: ${ref}`);
  return name;
}

function properties(schema, indent) {
  const required = new Set(schema.required);
  const inner = `${indent}  `;
  const fields = Object.entries(schema.properties).map(([name, field]) => {
    const key = /^\w+$/.test(name) ? name : JSON.stringify(name);
    return `${comment(field.description, inner)}${inner}${key}${required.has(name) ? "" : "?"}: ${type(field, inner)};\n`;
  });
  return `{\n${fields.join("")}${indent}}`;
}

function union(schemas, indent) {
  const inner = `${indent}  `;
  if (schemas.length === 2 && schemas[1].type === "null") return `${type(schemas[0], indent)} | null`;
  return schemas.map((one) => `\n${comment(one.description, inner)}${inner}| ${type(one, inner)}`).join("");
}

/** The parts of one schema hold together: an object with properties and a choice is both. */
function type(schema, indent) {
  if (schema === true) return "unknown";
  for (const word of Object.keys(schema)) {
    if (!KNOWN.has(word)) throw new Error(`\`${word}\` in a schema: add it to scripts/types.mjs`);
  }
  const parts = [];
  if (schema.$ref !== undefined) parts.push(reference(schema.$ref));
  if (schema.const !== undefined) parts.push(JSON.stringify(schema.const));
  if (schema.properties !== undefined) parts.push(properties(schema, indent));
  const choice = schema.oneOf ?? schema.anyOf;
  if (choice !== undefined) parts.push(parts.length > 0 ? `(${union(choice, indent)}\n${indent})` : union(choice, indent));
  if (schema.items !== undefined) {
    const item = type(schema.items, indent);
    parts.push(/^[\w.]+$/.test(item) ? `${item}[]` : `Array<${item}>`);
  }
  if (parts.length > 0) {
    const nullable = Array.isArray(schema.type) && schema.type.includes("null") ? " | null" : "";
    return parts.join(" & ") + nullable;
  }
  if (schema.type === "object") {
    const values = schema.additionalProperties;
    return `Record<string, ${values === undefined ? "unknown" : type(values, indent)}>`;
  }
  if (schema.type === undefined) return "unknown";
  return [schema.type].flat().map((name) => {
    if (SIMPLE[name] === undefined) throw new Error(`the type \`${name}\` in a schema: add it to scripts/types.mjs`);
    return SIMPLE[name];
  }).join(" | ");
}

function definition(name, schema) {
  const about = comment(schema.description, "");
  const plain = schema.properties !== undefined && !schema.oneOf && !schema.anyOf && !schema.$ref;
  if (plain) return `${about}export interface ${name} ${properties(schema, "")}\n`;
  return `${about}export type ${name} = ${type(schema, "")};\n`.replace(" = \n", " =\n");
}

function generate(schema) {
  const documents = definition("Documents", { properties: schema.properties, required: schema.required,
    description: schema.description });
  const rest = Object.entries(schema.$defs).map(([name, one]) => definition(name, one));
  const head = "// Made by scripts/types.mjs from `hearback schema`. Do not edit it.\n";
  return [head, documents, ...rest].join("\n");
}

const [program, mode] = process.argv.slice(2);
if (program === undefined) throw new Error("which program? node scripts/types.mjs PROGRAM [--check]");
const schema = JSON.parse(execFileSync(program, ["schema"], { encoding: "utf8", maxBuffer: 1 << 26 }));
const text = generate(schema);
if (mode === "--check") {
  if (readFileSync(FILE, "utf8") !== text) {
    console.error(`error: src/types.ts is not what \`${program} schema\` says`);
    console.error("tip: node scripts/types.mjs PROGRAM, then read the difference");
    process.exit(1);
  }
} else {
  writeFileSync(FILE, text);
}
