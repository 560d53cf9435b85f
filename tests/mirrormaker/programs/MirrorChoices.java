import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.mirror.DefaultGroupFilter;
import org.apache.kafka.connect.mirror.DefaultTopicFilter;
import org.apache.kafka.connect.mirror.MirrorMakerConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConnector;
import org.apache.kafka.connect.mirror.ReplicationPolicy;
import org.apache.kafka.connect.mirror.SourceAndTarget;

/**
 * The choices of MirrorMaker 2 by its own reading of properties files.
 *
 * Arguments: names, and after a dash the files. Prints for each file, enabled direction and name a line, with tabs
 * between: the file, the source, the target, the name, the name of its copy or a dash, and whether the offsets of a group
 * of that name are followed.
 */
public class MirrorChoices {
    public static void main(String[] arguments) throws Exception {
        int dash = Arrays.asList(arguments).indexOf("-");
        for (int i = dash + 1; i < arguments.length; i++) {
            Map properties = Utils.propsToStringMap(Utils.loadProps(arguments[i]));
            // Otherwise every class of the class path is read, each time.
            properties.put("plugin.discovery", "service_load");
            MirrorMakerConfig config = new MirrorMakerConfig(properties);
            for (Iterator pairs = config.clusterPairs().iterator(); pairs.hasNext(); ) {
                SourceAndTarget pair = (SourceAndTarget) pairs.next();
                Map given = config.connectorBaseConfig(pair, MirrorSourceConnector.class);
                // The connectors read their settings without blanks at the ends.
                if (Boolean.parseBoolean(((String) given.get("enabled")).trim())) {
                    String of = arguments[i] + "\t" + pair.source() + "\t" + pair.target() + "\t";
                    say(of, ((String) given.get("source.cluster.alias")).trim(), given, Arrays.asList(arguments).subList(0, dash));
                }
            }
        }
    }

    private static void say(String of, String source, Map given, List names) throws Exception {
        DefaultTopicFilter topics = new DefaultTopicFilter();
        topics.configure(given);
        DefaultGroupFilter groups = new DefaultGroupFilter();
        groups.configure(given);
        ReplicationPolicy policy = policy(given);
        for (Iterator it = names.iterator(); it.hasNext(); ) {
            String name = (String) it.next();
            boolean copied = topics.shouldReplicateTopic(name) && !policy.isInternalTopic(name);
            String copy = copied ? policy.formatRemoteTopic(source, name) : "-";
            System.out.println(of + name + "\t" + copy + "\t" + groups.shouldReplicateGroup(name));
        }
    }

    private static ReplicationPolicy policy(Map given) throws Exception {
        String name = (String) given.get("replication.policy.class");
        String standard = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy";
        Class found = Class.forName(name == null ? standard : name);
        ReplicationPolicy policy = (ReplicationPolicy) found.getDeclaredConstructor(new Class[0]).newInstance(new Object[0]);
        ((org.apache.kafka.common.Configurable) policy).configure(given);
        return policy;
    }
}
