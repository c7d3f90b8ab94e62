// Mix forecasts by the newest weights of a feed: java -cp 'lib/*' ReadWeights.java BOOTSTRAP FEED EXPERT=PROBABILITY ...
//
// lib holds kafka-clients with what it needs, and jackson-databind. The topic is compacted: it is read from its start to
// the end it has now, and the last record of each key counts. Records of thousands of experts come in parts, with keys
// FEED/0, FEED/1, ...; parts of one revision belong together.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class ReadWeights {
    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 3) {
            fail("ReadWeights.java BOOTSTRAP FEED EXPERT=PROBABILITY ...");
        }
        String feed = arguments[1];
        String topic = System.getenv().getOrDefault("STREAM_PEER_PREFIX", "") + "weights";
        List<JsonNode> parts = newestParts(newestValues(arguments[0], topic).values(), feed);
        Map<String, Double> mix = new HashMap<>();
        for (JsonNode part : parts) {
            part.get("experts").forEach(expert -> mix.put(expert.get("id").asText(), expert.get("mix").asDouble()));
        }
        double present = 0;
        double mixed = 0;
        for (String text : List.of(arguments).subList(2, arguments.length)) {
            int sign = text.lastIndexOf('=');
            double weight = mix.getOrDefault(text.substring(0, sign), 0.0); // no entry: weight 0
            present += weight;
            mixed += weight * Double.parseDouble(text.substring(sign + 1));
        }
        if (present == 0) {
            fail("none of these experts has a weight in " + feed);
        }
        JsonNode first = parts.get(0);
        // What the outcomes so far say: bolder, or less bold.
        double stretched = 0.5 + (1 + first.get("stretch").asDouble()) * (mixed / present - 0.5);
        System.out.printf(Locale.ROOT, "mixed %.4f, stretched %.4f (status %s, revision %d)%n", mixed / present,
                Math.min(1, Math.max(0, stretched)), first.get("status").asText(), first.get("revision").asLong());
    }

    /** The last value of each key, from the start of a topic to the end that it has now. No group is needed. */
    static Map<String, String> newestValues(String bootstrap, String topic) {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "enable.auto.commit", false,
                "isolation.level", "read_committed");
        Map<String, String> values = new HashMap<>();
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                    .map(info -> new TopicPartition(topic, info.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                consumer.poll(Duration.ofSeconds(1)).forEach(record -> values.put(record.key(), record.value()));
            }
        }
        return values;
    }

    /** The records of a feed's highest revision: one, or all its parts. */
    static List<JsonNode> newestParts(Collection<String> values, String feed) throws Exception {
        ObjectMapper json = new ObjectMapper();
        List<JsonNode> parts = new ArrayList<>();
        for (String value : values) {
            JsonNode record = json.readTree(value == null ? "{}" : value); // no value: the feed was deleted
            if (!record.path("feed").asText().equals(feed)) {
                continue;
            }
            long newest = parts.isEmpty() ? -1 : parts.get(0).get("revision").asLong();
            if (record.get("revision").asLong() > newest) {
                parts.clear();
            }
            if (record.get("revision").asLong() >= newest) {
                parts.add(record);
            }
        }
        if (parts.isEmpty()) {
            fail("no weights of " + feed);
        }
        if (parts.size() < parts.get(0).path("parts").asInt(1)) {
            fail("a newer record is just being written: try again");
        }
        return parts;
    }

    static void fail(String message) {
        System.err.println(message);
        System.exit(1);
    }
}
