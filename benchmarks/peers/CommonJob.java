import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * The common job on Kafka Streams: RocksDB with its cache, a changelog, at least once.
 *
 * <p>java CommonJob BOOTSTRAP APPLICATION INPUT OUTPUT DIRECTORY COMMIT_MILLISECONDS
 */
public final class CommonJob {
  private static final String STORE = "questions";

  private CommonJob() {}

  @JsonIgnoreProperties(ignoreUnknown = true)
  record Event(String question_id, Double probability) {}

  record Told(String question_id, long count, double mean) {}

  /** State of a question: how many events, and the sum of their probabilities. */
  static final class Count implements Processor<byte[], byte[], String, byte[]> {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ObjectReader READER = JSON.readerFor(Event.class);
    private static final ObjectWriter WRITER = JSON.writerFor(Told.class);
    private ProcessorContext<String, byte[]> context;
    private KeyValueStore<String, byte[]> questions;

    @Override
    public void init(ProcessorContext<String, byte[]> given) {
      context = given;
      questions = given.getStateStore(STORE);
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
      try {
        Event event = READER.readValue(record.value());
        String question = event.question_id() == null ? "tick" : event.question_id();
        byte[] known = questions.get(question);
        ByteBuffer before = ByteBuffer.wrap(known == null ? new byte[16] : known);
        long count = before.getLong() + 1;
        double sum = before.getDouble() + (event.probability() == null ? 0.0 : event.probability());
        questions.put(question, ByteBuffer.allocate(16).putLong(count).putDouble(sum).array());
        byte[] told = WRITER.writeValueAsBytes(new Told(question, count, sum / count));
        context.forward(record.withKey(question).withValue(told));
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }

  public static void main(String[] arguments) {
    Properties settings = new Properties();
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
    settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, arguments[5]);
    settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    settings.put("auto.offset.reset", "earliest");

    StreamsBuilder builder = new StreamsBuilder();
    builder.addStateStore(
        Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), Serdes.String(), Serdes.ByteArray())
            .withCachingEnabled());
    builder.stream(arguments[2], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
        .process(Count::new, STORE)
        .to(arguments[3], Produced.with(Serdes.String(), Serdes.ByteArray()));
    KafkaStreams streams = new KafkaStreams(builder.build(), settings);
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    streams.start();
  }
}
