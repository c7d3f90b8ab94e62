// Reads custom resources as a JSON list from stdin. Prints as JSON what the types of their operators find wrong with each.
import { readFileSync } from "node:fs";

const PACKAGES = { "keda.sh": "keda", "monitoring.coreos.com": "prometheus-operator" };

const faults = [];
for (const object of JSON.parse(readFileSync(0, "utf8"))) {
  const [group, version] = object.apiVersion.split("/");
  const kinds = await import(`@kubernetes-models/${PACKAGES[group]}/${group}/${version}/${object.kind}`);
  try {
    new kinds[object.kind](object).validate();
  } catch (error) {
    faults.push(`${object.kind} ${object.metadata.name}: ${error.message}`);
  }
}
console.log(JSON.stringify(faults));
