// Mix forecasts by the newest weights of a feed. Parts of one revision, with thousands of experts, are one record.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class ReadWeights {
    public static void main(String[] given) throws Exception {
        check(given.length > 2, "java -cp 'lib/*' ReadWeights.java BOOTSTRAP FEED EXPERT=PROBABILITY ...");
        String topic = System.getenv().getOrDefault("STREAM_PEER_PREFIX", "") + "weights";
        List<JsonNode> parts = new ArrayList<>();
        for (String value : newestValues(given[0], topic).values()) {
            JsonNode record = new ObjectMapper().readTree(value == null ? "{}" : value); // no value: a deleted feed
            long newest = parts.isEmpty() ? -1 : parts.get(0).get("revision").asLong();
            if (record.path("feed").asText().equals(given[1]) && record.get("revision").asLong() >= newest) {
                parts.removeIf(part -> record.get("revision").asLong() > newest);
                parts.add(record);
            }
        }
        check(!parts.isEmpty(), "no weights of " + given[1]);
        JsonNode first = parts.get(0);
        check(parts.size() == first.path("parts").asInt(1), "a newer record is being written: try again");
        Map<String, Double> mix = new HashMap<>();
        parts.forEach(part -> part.get("experts").forEach(e -> mix.put(e.get("id").asText(), e.get("mix").asDouble())));
        double present = 0, sum = 0;
        for (String text : List.of(given).subList(2, given.length)) {
            double weight = mix.getOrDefault(text.substring(0, text.lastIndexOf('=')), 0.0); // no entry: weight 0
            present += weight;
            sum += weight * Double.parseDouble(text.substring(text.lastIndexOf('=') + 1));
        }
        check(present > 0, "none of these experts has a weight in " + given[1]);
        double stretched = 0.5 + (1 + first.get("stretch").asDouble()) * (sum / present - 0.5); // bolder, or less bold
        System.out.printf(Locale.ROOT, "mixed %.4f, stretched %.4f (status %s, revision %d)%n", sum / present,
                Math.min(1, Math.max(0, stretched)), first.get("status").asText(), first.get("revision").asLong());
    }

    /** The last value of each key, from the start of a topic to the end that it has now. No group is needed. */
    static Map<String, String> newestValues(String bootstrap, String topic) {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed");
        Map<String, String> values = new HashMap<>();
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            var infos = consumer.partitionsFor(topic);
            var all = infos.stream().map(info -> new TopicPartition(topic, info.partition())).toList();
            consumer.assign(all);
            consumer.seekToBeginning(all);
            var ends = consumer.endOffsets(all);
            while (all.stream().anyMatch(place -> consumer.position(place) < ends.get(place))) {
                consumer.poll(Duration.ofSeconds(1)).forEach(record -> values.put(record.key(), record.value()));
            }
        }
        return values;
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) { System.err.println(otherwise); System.exit(1); }
    }
}
