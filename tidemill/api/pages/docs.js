"use strict";
// Reads the OpenAPI document of this server and lets a person try it out. Everything from the
// document or an answer is put in as text, never as HTML.

const METHODS = ["get", "post", "put", "patch", "delete"];
const DEPTH_MAX = 8;
let api = null;

const find = (id) => document.getElementById(id);

function make(tag, facts = {}, ...inside) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...inside.filter((part) => part !== null && part !== undefined));
  return node;
}

// `words` between backticks as code, the rest as it is.
function prose(text) {
  return (text || "").split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));
}

function resolve(thing) {
  for (let hops = 0; thing && thing.$ref && hops < DEPTH_MAX; hops += 1) {
    const { $ref, ...rest } = thing;
    const target = $ref.slice(2).split("/").reduce((at, key) => at && at[key], api);
    thing = { ...target, ...rest };
  }
  return thing || {};
}

// ---- examples --------------------------------------------------------------------------------

function exampleOf(schema, depth = 0) {
  const found = resolve(schema);
  if (found.example !== undefined) return found.example;
  if (Array.isArray(found.examples) && found.examples.length) return found.examples[0];
  if (found.const !== undefined) return found.const;
  if (found.enum) return found.enum[0];
  if (found.default !== undefined && found.default !== null) return found.default;
  const options = found.anyOf || found.oneOf;
  if (options) return exampleOf(options.find((one) => one.type !== "null") || options[0], depth + 1);
  if (depth > DEPTH_MAX) return null;
  const kind = Array.isArray(found.type) ? found.type[0] : found.type;
  switch (kind) {
    case "object": return exampleObject(found, depth);
    case "array": return found.minItems ? [exampleOf(found.items, depth + 1)] : [];
    case "integer": case "number": return found.minimum ?? 0;
    case "boolean": return false;
    case "string": return found.format === "date-time" ? new Date().toISOString() : "text";
    default: return {};
  }
}

function exampleObject(schema, depth) {
  const filled = {};
  for (const name of schema.required || []) {
    filled[name] = exampleOf((schema.properties || {})[name], depth + 1);
  }
  return filled;
}

// ---- schemas ---------------------------------------------------------------------------------

function kindOf(schema) {
  const name = schema && schema.$ref ? schema.$ref.split("/").pop() : "";
  const found = resolve(schema);
  if (name) return name;
  if (found.enum) return found.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (found.const !== undefined) return JSON.stringify(found.const);
  const options = found.anyOf || found.oneOf;
  if (options) return options.map(kindOf).join(" | ");
  if (found.type === "array") return `list of ${kindOf(found.items || {})}`;
  return [].concat(found.type || "anything").join(" | ");
}

function boundsOf(schema) {
  const found = resolve(schema);
  const said = [];
  if (found.minimum !== undefined) said.push(`≥ ${found.minimum}`);
  if (found.maximum !== undefined) said.push(`≤ ${found.maximum}`);
  if (found.minLength) said.push(`at least ${found.minLength} characters`);
  if (found.maxLength) said.push(`at most ${found.maxLength} characters`);
  if (found.pattern) said.push(found.pattern);
  if (found.format) said.push(found.format);
  if (found.default !== undefined && found.default !== null) said.push(`default ${JSON.stringify(found.default)}`);
  return said.join(", ");
}

function schemaTree(schema, depth = 0) {
  const found = resolve(schema);
  const options = (found.anyOf || found.oneOf || []).filter((one) => one.type !== "null");
  if (depth < DEPTH_MAX && options.length === 1) return schemaTree(options[0], depth + 1);
  if (found.type === "array") return schemaTree(found.items || {}, depth + 1);
  const box = make("div", { class: "schema" });
  for (const [name, part] of Object.entries(found.properties || {})) {
    const needed = (found.required || []).includes(name) ? " *" : "";
    const line = [make("code", {}, name + needed), " ", make("span", { class: "kind" },
      [kindOf(part), boundsOf(part), resolve(part).description].filter(Boolean).join(" · "))];
    const deeper = depth < DEPTH_MAX && hasFields(part);
    if (!deeper) box.append(make("div", {}, ...line));
    else {
      const fold = make("details", {}, make("summary", {}, ...line));
      fold.addEventListener("toggle", () => {
        if (fold.open && fold.children.length === 1) fold.append(schemaTree(part, depth + 1));
      });
      box.append(fold);
    }
  }
  if (!box.children.length) box.append(make("span", { class: "kind" }, kindOf(schema)));
  return box;
}

function hasFields(schema) {
  const found = resolve(schema);
  if (found.properties && Object.keys(found.properties).length) return true;
  if (found.type === "array") return hasFields(found.items || {});
  return (found.anyOf || found.oneOf || []).some(hasFields);
}

// ---- one operation ---------------------------------------------------------------------------

function operationBox(method, path, operation) {
  const box = make("details", { class: "operation", id: operation.operationId },
    make("summary", {},
      make("span", { class: `method ${method}` }, method.toUpperCase()),
      make("span", { class: "path" }, path),
      make("span", { class: "told" }, operation.summary || "")));
  box.dataset.words = `${method} ${path} ${operation.summary} ${operation.operationId} ${operation.tags}`.toLowerCase();
  box.addEventListener("toggle", () => {
    if (box.open && box.children.length === 1) box.append(operationInside(method, path, operation));
  });
  return box;
}

function operationInside(method, path, operation) {
  const inside = make("div", { class: "inside" }, make("p", {}, ...prose(operation.description)));
  const inputs = (operation.parameters || []).map(resolve)
    .filter((one) => one.name !== "Tidemill-Namespace").map((one) => parameterInput(operation, one));
  if (inputs.length) {
    inside.append(make("h3", {}, "Parameters"),
      make("div", { class: "fields" }, ...inputs.flatMap((one) => one.nodes)));
  }
  const body = bodyInput(operation);
  if (body) inside.append(make("h3", {}, "Body"), ...body.nodes);
  const shown = make("div", { "aria-live": "polite" });
  const curl = make("pre", {});
  const request = () => buildRequest(method, path, inputs, body);
  const refresh = () => { curl.textContent = curlOf(request()); };
  inside.addEventListener("input", refresh);
  const stop = make("button", { type: "button", disabled: true }, "Stop");
  const send = make("button", { type: "button", class: "send" }, "Send");
  send.addEventListener("click", () => { refresh(); perform(request(), shown, send, stop); });
  const copy = make("button", { type: "button" }, "Copy curl");
  copy.addEventListener("click", () => { refresh(); navigator.clipboard?.writeText(curl.textContent); say("copied"); });
  inside.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send.click();
  });
  inside.append(make("div", { class: "row" }, send, stop, copy), curl, shown, answersOf(operation));
  refresh();
  return inside;
}

function parameterInput(operation, parameter) {
  const id = `${operation.operationId}.${parameter.name}`;
  const schema = resolve(parameter.schema);
  const options = schema.enum || (schema.type === "boolean" ? [true, false] : null);
  const field = options
    ? make("select", { id }, make("option", { value: "" }, ""), ...options.map((one) => make("option", {}, String(one))))
    : make("input", { id, class: "value", spellcheck: "false", placeholder: schema.default ?? "" });
  return {
    parameter, field,
    nodes: [
      make("label", { for: id, class: parameter.required ? "need" : "" }, parameter.name),
      field,
      make("span", { class: "about" },
        [parameter.in, kindOf(parameter.schema), boundsOf(parameter.schema), parameter.description].filter(Boolean).join(" · ")),
    ],
  };
}

function bodyInput(operation) {
  const content = operation.requestBody && operation.requestBody.content;
  if (!content) return null;
  const kinds = Object.keys(content);
  const chosen = make("select", { "aria-label": "Media type" }, ...kinds.map((one) => make("option", {}, one)));
  const text = make("textarea", { "aria-label": "Body", spellcheck: "false" });
  const tree = make("details", {}, make("summary", {}, "Fields"));
  const fill = () => {
    const media = content[chosen.value];
    const value = media.example ?? exampleOf(media.schema);
    text.value = chosen.value.includes("ndjson") ? `${JSON.stringify(value)}\n` : JSON.stringify(value, null, 2);
    tree.replaceChildren(tree.firstChild, schemaTree(media.schema));
  };
  chosen.addEventListener("change", fill);
  fill();
  return { text, chosen, nodes: [kinds.length > 1 ? chosen : make("span", {}, ""), text, tree] };
}

function answersOf(operation) {
  const list = make("ul", { class: "responses" });
  for (const [status, answer] of Object.entries(operation.responses)) {
    const found = resolve(answer);
    const media = Object.values(found.content || {})[0];
    const line = [make("code", {}, status), ...prose(found.description)];
    const schema = status < "400" && media && media.schema;
    list.append(make("li", {}, schema
      ? make("details", {}, make("summary", {}, ...line), schemaTree(schema))
      : make("span", {}, ...line)));
  }
  return make("div", {}, make("h3", {}, "Answers"), list);
}

// ---- requests --------------------------------------------------------------------------------

function buildRequest(method, path, inputs, body) {
  const query = new URLSearchParams();
  const headers = {};
  for (const { parameter, field } of inputs) {
    const value = field.value.trim();
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(value || "…"));
    else if (value && parameter.in === "header") headers[parameter.name] = value;
    else if (value) for (const one of manyOf(parameter, value)) query.append(parameter.name, one);
  }
  const token = find("token").value.trim();
  const namespace = find("namespace").value.trim();
  if (token) headers.Authorization = `Bearer ${token}`;
  if (namespace) headers["Tidemill-Namespace"] = namespace;
  if (body) headers["Content-Type"] = body.chosen.value;
  const asked = query.toString();
  return { method: method.toUpperCase(), url: `${location.origin}${path}${asked ? `?${asked}` : ""}`, headers, body: body && body.text.value };
}

function manyOf(parameter, value) {
  return resolve(parameter.schema).type === "array" ? value.split(",").map((one) => one.trim()) : [value];
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curlOf(request) {
  const parts = [`curl -X ${request.method} ${quote(request.url)}`];
  for (const [name, value] of Object.entries(request.headers)) {
    parts.push(`-H ${quote(`${name}: ${name === "Authorization" ? "Bearer $TIDEMILL_API_TOKEN" : value}`)}`.replace("'Authorization: Bearer $TIDEMILL_API_TOKEN'", '"Authorization: Bearer $TIDEMILL_API_TOKEN"'));
  }
  if (request.body) parts.push(`--data-binary ${quote(compact(request.body))}`);
  return parts.join(" \\\n  ");
}

function compact(text) {
  try { return JSON.stringify(JSON.parse(text)); } catch { return text; }
}

async function perform(request, shown, send, stop) {
  const control = new AbortController();
  const halt = () => control.abort();
  stop.addEventListener("click", halt);
  send.disabled = true;
  stop.disabled = false;
  const began = performance.now();
  const output = make("pre", {});
  try {
    const answer = await fetch(request.url, {
      method: request.method, headers: request.headers, body: request.body || undefined,
      signal: control.signal, cache: "no-store", credentials: "omit",
    });
    const headers = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    shown.replaceChildren(
      make("h3", {}, "Answer"),
      make("p", { class: answer.ok ? "good" : "bad" }, `${answer.status} ${answer.statusText} · ${Math.round(performance.now() - began)} ms`),
      make("details", {}, make("summary", {}, "Headers"), make("pre", {}, headers)), output);
    await readInto(output, answer);
  } catch (error) {
    if (error.name !== "AbortError") shown.replaceChildren(make("p", { class: "bad" }, `no answer: ${error.message}`));
  } finally {
    stop.removeEventListener("click", halt);
    send.disabled = false;
    stop.disabled = true;
  }
}

const SHOWN_CHARACTERS_MAX = 200000;

async function readInto(output, answer) {
  if (!answer.body) return;
  const isJson = (answer.headers.get("content-type") || "").includes("json") && !(answer.headers.get("content-type") || "").includes("ndjson");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text = (text + value).slice(-SHOWN_CHARACTERS_MAX);
    if (!isJson) output.textContent = text;
  }
  if (!isJson) return;
  try { output.textContent = JSON.stringify(JSON.parse(text), null, 2); } catch { output.textContent = text; }
}

// ---- the page --------------------------------------------------------------------------------

function say(text) {
  find("status").textContent = text;
  setTimeout(() => { find("status").textContent = ""; }, 2000);
}

function build() {
  find("version").textContent = api.info.version;
  find("about").replaceChildren(...prose(api.info.description));
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((one) => methods[one])) {
      const tag = (methods[method].tags || ["other"])[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(operationBox(method, path, methods[method]));
    }
  }
  for (const [tag, boxes] of groups) {
    find("tags").append(make("a", { href: `#tag-${tag}` }, tag, " ", make("small", {}, String(boxes.length))));
    find("operations").append(make("section", { id: `tag-${tag}` }, make("h2", {}, tag), ...boxes));
  }
  openNamed();
}

function openNamed() {
  const named = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named && named.tagName === "DETAILS") { named.open = true; named.scrollIntoView(); }
}

function filter() {
  const words = find("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const section of document.querySelectorAll("main section")) {
    let some = false;
    for (const box of section.querySelectorAll("details.operation")) {
      box.hidden = !words.every((word) => box.dataset.words.includes(word));
      some = some || !box.hidden;
    }
    section.hidden = !some;
  }
}

async function begin() {
  find("who").addEventListener("submit", (event) => event.preventDefault());
  find("filter").addEventListener("input", filter);
  for (const id of ["token", "namespace"]) {
    find(id).addEventListener("input", () => {
      for (const box of document.querySelectorAll(".inside")) box.dispatchEvent(new Event("input"));
    });
  }
  window.addEventListener("hashchange", openNamed);
  try {
    api = await (await fetch("/v1/openapi.json")).json();
    build();
  } catch (error) {
    find("about").textContent = `The OpenAPI document cannot be read: ${error.message}`;
  }
}

begin();
