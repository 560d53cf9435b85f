import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.sourcelab.kafka.connect.apiclient.Configuration;
import org.sourcelab.kafka.connect.apiclient.KafkaConnectClient;
import org.sourcelab.kafka.connect.apiclient.request.dto.ConnectorPlugin;
import org.sourcelab.kafka.connect.apiclient.request.dto.ConnectorPluginConfigDefinition;
import org.sourcelab.kafka.connect.apiclient.request.dto.ConnectorStatus;
import org.sourcelab.kafka.connect.apiclient.request.dto.Task;

/** Reads a connector as AKHQ does, and gives it one command: a line for each answer, with tabs between its parts. */
public class ConnectCalls {
    public static void main(String[] arguments) {
        Configuration configuration = new Configuration(arguments[0]);
        configuration.useBasicAuth("anybody", arguments[1]);
        KafkaConnectClient client = new KafkaConnectClient(configuration);
        String name = arguments[2];
        String command = arguments[3];
        say("cluster", client.getConnectServerVersion().getKafkaClusterId());
        say("connectors", String.valueOf(client.getConnectors()));
        say("expanded", String.valueOf(client.getConnectorsWithAllExpandedMetadata().getConnectorNames()));
        say("type", client.getConnector(name).getType());
        say("secret", String.valueOf(client.getConnectorConfig(name).get("SHARED_SECRET")));
        say("topics", String.valueOf(client.getConnectorTopics(name).getTopics()));
        for (Iterator plugins = client.getConnectorPlugins().iterator(); plugins.hasNext();) {
            String plugin = ((ConnectorPlugin) plugins.next()).getClassName();
            say("plugin", plugin);
            Map<String, String> given = new HashMap<String, String>();
            given.put("connector.class", plugin);
            ConnectorPluginConfigDefinition asked = new ConnectorPluginConfigDefinition(plugin, given);
            say("settings", String.valueOf(client.validateConnectorPluginConfig(asked).getConfigs()));
        }
        for (Iterator tasks = client.getConnectorTasks(name).iterator(); tasks.hasNext();) {
            say("task", String.valueOf(((Task) tasks.next()).getId().getTask()));
        }
        ConnectorStatus status = client.getConnectorStatus(name);
        say("state", String.valueOf(status.getConnector().get("state")));
        for (Iterator tasks = status.getTasks().iterator(); tasks.hasNext();) {
            ConnectorStatus.TaskStatus task = (ConnectorStatus.TaskStatus) tasks.next();
            say("task state", task.getState() + "\t" + String.valueOf(task.getTrace()).replace("\n", " "));
        }
        if (command.equals("pause")) {
            say("done", String.valueOf(client.pauseConnector(name)));
        } else if (command.equals("resume")) {
            say("done", String.valueOf(client.resumeConnector(name)));
        } else if (command.equals("restart")) {
            say("done", String.valueOf(client.restartConnectorTask(name, 0)));
        }
    }

    private static void say(String name, String value) {
        System.out.println(name + "\t" + value);
    }
}
