// Mix forecasts by the newest weights of a feed: node read-weights.mjs BOOTSTRAP FEED EXPERT=PROBABILITY ...
//
// npm install kafkajs fzstd. The topic is compacted: it is read from its start to the end it has now, and the last record
// of each key counts. Records of thousands of experts come in parts, with keys FEED/0, FEED/1, ...; parts of one revision
// belong together.
import { randomUUID } from "node:crypto";
import { decompress } from "fzstd";
import kafkajs from "kafkajs";

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = kafkajs;
CompressionCodecs[CompressionTypes.ZSTD] = () => ({ decompress: async (bytes) => Buffer.from(decompress(bytes)) });

const [bootstrap, feed, ...given] = process.argv.slice(2);
if (given.length === 0) fail("read-weights.mjs BOOTSTRAP FEED EXPERT=PROBABILITY ...");

function fail(message) {
  console.error(message);
  process.exit(1);
}

/** The last value of each key, from the start of a topic to the end that it has now. */
async function newest(kafka, topic) {
  const values = new Map();
  const admin = kafka.admin();
  await admin.connect();
  const ends = new Map();
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
    const eachBatch = async ({ batch }) => {
      for (const { key, value } of batch.messages) values.set(String(key), value);
    };
    // The end is an offset, not a message: a topic may end in an aborted transaction, whose messages never come.
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload: { partition, lastOffset } }) => {
      if (BigInt(lastOffset) + 1n >= (ends.get(partition) ?? 0n)) ends.delete(partition);
      if (ends.size === 0) resolve();
    });
    consumer.run({ autoCommit: false, eachBatch }).catch(reject);
  });
  await consumer.disconnect();
  await admin.deleteGroups([groupId]);
  await admin.disconnect();
  return values;
}

const kafka = new Kafka({ brokers: bootstrap.split(","), clientId: "read-weights", logLevel: logLevel.NOTHING });
const topic = (process.env.STREAM_PEER_PREFIX ?? "") + "weights";
const values = [...(await newest(kafka, topic)).values()].filter((value) => value !== null); // null: the feed is deleted
const records = values.map((value) => JSON.parse(value)).filter((record) => record.feed === feed);
if (records.length === 0) fail(`no weights of ${feed}`);

const revision = Math.max(...records.map((record) => record.revision));
const parts = records.filter((record) => record.revision === revision);
if (parts.length < (parts[0].parts ?? 1)) fail("a newer record is just being written: try again");

const mix = new Map(parts.flatMap(({ experts }) => experts).map(({ id, mix }) => [id, mix]));
const forecasts = given.map((text) => [text.slice(0, text.lastIndexOf("=")), Number(text.slice(text.lastIndexOf("=") + 1))]);
const weight = (expert) => mix.get(expert) ?? 0; // an expert without an entry has weight 0
const present = forecasts.reduce((sum, [expert]) => sum + weight(expert), 0);
if (present === 0) fail(`none of these experts has a weight in ${feed}`);
const mixed = forecasts.reduce((sum, [expert, probability]) => sum + weight(expert) * probability, 0) / present;
const bolder = 0.5 + (1 + parts[0].stretch) * (mixed - 0.5); // what the outcomes so far say: bolder, or less bold
const stretched = Math.min(1, Math.max(0, bolder));
console.log(
  `mixed ${mixed.toFixed(4)}, stretched ${stretched.toFixed(4)} (status ${parts[0].status}, revision ${revision})`,
);
