// Reads an AsyncAPI document from stdin with the official parser. Prints as JSON what it found wrong (severity 0 is an
// error) and what it understood: channels, operations and messages by name.
import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser/cjs/index.js";

const { document, diagnostics } = await new Parser().parse(readFileSync(0, "utf8"));
const names = (found) => found.all().map((each) => each.id()).sort();
const understood = document && {
  version: document.version(),
  channels: names(document.channels()),
  operations: document.operations().all().map((each) => [each.id(), each.action()]).sort(),
  messages: names(document.components().messages()),
};
const said = diagnostics.map(({ severity, code, path, message }) => ({ severity, code, path: path.join("."), message }));
console.log(JSON.stringify({ diagnostics: said, understood }));
