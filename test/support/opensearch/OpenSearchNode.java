import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;

/** A node of its own with the modules that indexing, mappings and ingest pipelines need. Arguments: a directory, then settings as NAME=VALUE. */
public class OpenSearchNode extends Node {
  private OpenSearchNode(Environment environment) {
    super(
        environment,
        List.<Class<? extends Plugin>>of(
            org.opensearch.transport.Netty4Plugin.class,
            org.opensearch.analysis.common.CommonAnalysisPlugin.class,
            org.opensearch.ingest.common.IngestCommonPlugin.class,
            org.opensearch.script.mustache.MustachePlugin.class,
            org.opensearch.index.mapper.MapperExtrasPlugin.class),
        true);
  }

  public static void main(String[] arguments) throws Exception {
    Path home = Path.of(arguments[0]);
    Files.createDirectories(home.resolve("config"));
    Settings.Builder settings = Settings.builder().put("path.home", home.toString());
    for (String setting : List.of(arguments).subList(1, arguments.length)) {
      String[] pair = setting.split("=", 2);
      settings.put(pair[0], pair[1]);
    }
    Node node = new OpenSearchNode(new Environment(settings.build(), home.resolve("config")));
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  try {
                    node.close();
                  } catch (java.io.IOException ignored) {
                    // It ends all the same.
                  }
                }));
    node.start();
    Thread.currentThread().join();
  }
}
