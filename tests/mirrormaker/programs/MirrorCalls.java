import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Pattern;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * A program written for MirrorMaker 2: what its client says of a cluster, and what a consumer then reads.
 *
 * Arguments: bootstrap servers, separator, source cluster, group, further clusters to count hops to.
 * Prints a line for each call: its name, a tab, and the answer's parts, sorted, with a tab between two.
 */
public class MirrorCalls {
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    public static void main(String[] arguments) throws Exception {
        Map properties = new HashMap();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("replication.policy.separator", arguments[1]);
        String source = arguments[2];
        String group = arguments[3];
        say("heartbeatTopics", RemoteClusterUtils.heartbeatTopics(properties));
        say("checkpointTopics", RemoteClusterUtils.checkpointTopics(properties));
        say("upstreamClusters", RemoteClusterUtils.upstreamClusters(properties));
        for (int i = 2; i < arguments.length; i++) {
            if (i != 3) {
                String hops = Integer.toString(RemoteClusterUtils.replicationHops(properties, arguments[i]));
                say("replicationHops " + arguments[i], Arrays.asList(new Object[] {hops}));
            }
        }
        MirrorClient client = new MirrorClient(properties);
        say("remoteTopics", client.remoteTopics());
        say("remoteTopics " + source, client.remoteTopics(source));
        client.close();
        Map offsets = RemoteClusterUtils.translateOffsets(properties, source, group, PATIENCE);
        say("translateOffsets", shown(offsets));
        byPattern(properties, source, group);
        failOver(arguments[0], offsets);
    }

    /** The overload of KIP-1239, which older clients do not have. */
    private static void byPattern(Map properties, String source, String group) throws Exception {
        Method[] methods = RemoteClusterUtils.class.getMethods();
        for (int i = 0; i < methods.length; i++) {
            if (methods[i].getName().equals("translateOffsets") && methods[i].getParameterTypes()[2] == Pattern.class) {
                Object[] given = new Object[] {properties, source, Pattern.compile(Pattern.quote(group)), PATIENCE};
                Map found = (Map) methods[i].invoke(null, given);
                say("groups by pattern", found.keySet());
                say("translateOffsets by pattern", shown((Map) found.get(group)));
            }
        }
    }

    private static void failOver(String servers, Map offsets) {
        Map properties = new HashMap();
        properties.put("bootstrap.servers", servers);
        properties.put("isolation.level", "read_committed");
        KafkaConsumer consumer = new KafkaConsumer(properties, new StringDeserializer(), new StringDeserializer());
        consumer.assign(offsets.keySet());
        for (Iterator each = offsets.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            consumer.seek((TopicPartition) entry.getKey(), (OffsetAndMetadata) entry.getValue());
        }
        Collection read = new TreeSet();
        Map ends = consumer.endOffsets(offsets.keySet());
        while (behind(consumer, ends)) {
            for (Iterator each = consumer.poll(PATIENCE).iterator(); each.hasNext();) {
                ConsumerRecord record = (ConsumerRecord) each.next();
                read.add(record.topic() + "-" + record.partition() + " " + record.value());
            }
        }
        consumer.close();
        say("read", read);
    }

    private static boolean behind(KafkaConsumer consumer, Map ends) {
        for (Iterator each = ends.keySet().iterator(); each.hasNext();) {
            TopicPartition partition = (TopicPartition) each.next();
            if (consumer.position(partition) < ((Long) ends.get(partition)).longValue()) {
                return true;
            }
        }
        return false;
    }

    private static Collection shown(Map offsets) {
        Collection lines = new TreeSet();
        for (Iterator each = offsets.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            OffsetAndMetadata offset = (OffsetAndMetadata) entry.getValue();
            lines.add(entry.getKey() + " " + offset.offset() + " " + offset.metadata());
        }
        return lines;
    }

    private static void say(String name, Collection parts) {
        StringBuilder line = new StringBuilder(name);
        for (Iterator each = new TreeSet(parts).iterator(); each.hasNext();) {
            line.append("\t").append(each.next());
        }
        System.out.println(line);
    }
}
