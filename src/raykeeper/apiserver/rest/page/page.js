// Every operation of the exact document, with a form that sends it. Text is only ever set as text.

const DEEPEST = 6; // of an example: messages may lead back to themselves

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function resolved(schema, definitions) {
  return schema.$ref ? definitions[schema.$ref.split("/").pop()] : schema;
}

function example(schema, definitions, depth = 0) {
  const found = resolved(schema, definitions);
  if (found.anyOf) return 0;
  if (found.type === "array") return [];
  if (found.type === "boolean") return false;
  if (found.type === "integer" || found.type === "number") return 0;
  if (found.type !== "object") return "";
  if (!found.properties || depth >= DEEPEST) return {};
  const fields = Object.entries(found.properties).filter(([, field]) => !field.readOnly);
  return Object.fromEntries(fields.map(([name, field]) => [name, example(field, definitions, depth + 1)]));
}

function parameterInput(parameter) {
  const input = element("input", { name: parameter.name, required: parameter.required });
  const note = element("small", { textContent: ` ${parameter.in}. ${parameter.description ?? ""}` });
  return element("label", {}, `${parameter.name} `, input, note);
}

function address(path, parameters, form) {
  const query = new URLSearchParams();
  let filled = path;
  for (const parameter of parameters) {
    const value = form.elements[parameter.name].value;
    if (parameter.in === "path") filled = filled.replace(`{${parameter.name}}`, encodeURIComponent(value));
    else if (value) query.set(parameter.name, value);
  }
  return query.size ? `${filled}?${query}` : filled;
}

async function send(verb, url, body, output) {
  const token = document.getElementById("token").value;
  const headers = { ...(token && { Authorization: `Bearer ${token}` }), ...(body && { "Content-Type": "application/json" }) };
  output.textContent = "…";
  try {
    const response = await fetch(url, { method: verb.toUpperCase(), headers, body });
    const text = await response.text();
    output.textContent = `${response.status} ${response.statusText}\n${pretty(text)}`;
  } catch (error) {
    output.textContent = String(error);
  }
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function operationForm(path, verb, operation, definitions) {
  const parameters = operation.parameters ?? [];
  const form = element("form", {}, ...parameters.map(parameterInput));
  const schema = operation.requestBody?.content["application/json"].schema;
  const body = schema && element("textarea", { rows: 14, value: JSON.stringify(example(schema, definitions), null, 2) });
  const output = element("pre", { hidden: true });
  if (body) form.append(element("label", {}, "Body", body));
  form.append(element("button", { textContent: "Send" }), output);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    output.hidden = false;
    send(verb, address(path, parameters, form), body?.value, output);
  });
  return form;
}

function operationDetails(path, verb, operation, definitions) {
  const title = element(
    "summary",
    {},
    element("code", {}, element("b", { className: `verb ${verb}`, textContent: verb.toUpperCase() }), path),
    element("span", { textContent: operation.summary }),
  );
  const details = element("details", { id: operation.operationId }, title);
  // Made when it is opened: an example of a cluster has two hundred fields.
  details.addEventListener("toggle", () => details.append(operationForm(path, verb, operation, definitions)), { once: true });
  return details;
}

async function show() {
  const main = document.getElementById("operations");
  const description = await (await fetch("../swagger/openapi.json")).json();
  const definitions = description.components.schemas;
  const groups = new Map();
  for (const [path, verbs] of Object.entries(description.paths)) {
    for (const [verb, operation] of Object.entries(verbs)) {
      const [tag] = operation.tags;
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(operationDetails(path, verb, operation, definitions));
    }
  }
  for (const [tag, operations] of groups) main.append(element("h2", { textContent: tag }), ...operations);
}

show();
