// Mix forecasts by the newest weights of a feed; npm install kafkajs fzstd.
// The last record of each key counts. Records of thousands of experts come in parts: those of one revision are one.
import { randomUUID } from "node:crypto";
import { decompress } from "fzstd";
import kafkajs from "kafkajs";

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = kafkajs;
CompressionCodecs[CompressionTypes.ZSTD] = () => ({ decompress: async (bytes) => Buffer.from(decompress(bytes)) });

function check(holds, otherwise) {
  if (holds) return;
  console.error(otherwise);
  process.exit(1);
}

/** The last value of each key, from the start of a topic to the end that it has now. */
async function newest(kafka, topic) {
  const [values, ends, admin] = [new Map(), new Map(), kafka.admin()];
  await admin.connect();
  for (const { partition, low, high } of await admin.fetchTopicOffsets(topic)) {
    if (BigInt(high) > BigInt(low)) ends.set(partition, BigInt(high));
  }
  const groupId = `read-weights-${randomUUID()}`; // kafkajs knows no consumer without a group: it is deleted below
  const consumer = kafka.consumer({ groupId });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await new Promise((resolve, reject) => {
    if (ends.size === 0) resolve();
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    // The end is an offset, not a message: a topic may end in an aborted transaction, whose messages never come.
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload: { partition, lastOffset } }) => {
      if (BigInt(lastOffset) + 1n >= (ends.get(partition) ?? 0n)) ends.delete(partition);
      if (ends.size === 0) resolve();
    });
    const eachBatch = async ({ batch }) => batch.messages.forEach(({ key, value }) => values.set(String(key), value));
    consumer.run({ autoCommit: false, eachBatch }).catch(reject);
  });
  await consumer.disconnect();
  await admin.deleteGroups([groupId]);
  await admin.disconnect();
  return [...values.values()].filter((value) => value !== null).map((value) => JSON.parse(value)); // null: deleted
}

const [bootstrap, feed, ...given] = process.argv.slice(2);
check(given.length > 0, "node read-weights.mjs BOOTSTRAP FEED EXPERT=PROBABILITY ...");
const kafka = new Kafka({ brokers: bootstrap.split(","), clientId: "read-weights", logLevel: logLevel.NOTHING });
const records = (await newest(kafka, `${process.env.STREAM_PEER_PREFIX ?? ""}weights`)).filter((r) => r.feed === feed);
check(records.length > 0, `no weights of ${feed}`);
const revision = Math.max(...records.map((record) => record.revision));
const parts = records.filter((record) => record.revision === revision);
check(parts.length === (parts[0].parts ?? 1), "a newer record is being written: try again");
const mix = new Map(parts.flatMap(({ experts }) => experts).map(({ id, mix }) => [id, mix]));
const forecasts = given.map((text) => [mix.get(text.replace(/=[^=]*$/, "")) ?? 0, Number(text.replace(/.*=/, ""))]);
const present = forecasts.reduce((sum, [weight]) => sum + weight, 0); // an expert without an entry has weight 0
check(present > 0, `none of these experts has a weight in ${feed}`);
const mixed = forecasts.reduce((sum, [weight, probability]) => sum + weight * probability, 0) / present;
const stretched = Math.min(1, Math.max(0, 0.5 + (1 + parts[0].stretch) * (mixed - 0.5))); // bolder, or less bold
const status = `status ${parts[0].status}, revision ${revision}`;
console.log(`mixed ${mixed.toFixed(4)}, stretched ${stretched.toFixed(4)} (${status})`);
