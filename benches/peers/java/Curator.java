import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.retry.RetryForever;

/** Curator's LeaderLatch. The sequence number of the leader's node is the epoch. */
final class Curator {
    private static final String LATCH = "/leader";
    /** The shortest that a ZooKeeper with its default tick takes, and Curator's own default. */
    private static final int SHORTEST_MS = 4_000, DEFAULT_MS = 60_000;

    public static void main(String[] args) throws Exception {
        var sidecar = new Sidecar(args);
        String at = System.getProperty("zookeeper");
        var client = CuratorFrameworkFactory.builder().connectString(at)
            .sessionTimeoutMs(sidecar.fast() ? SHORTEST_MS : DEFAULT_MS).connectionTimeoutMs(2_000)
            .retryPolicy(new RetryForever(100)).namespace(sidecar.flag("--election")).build();
        client.start();
        var latch = new LeaderLatch(client, LATCH, sidecar.flag("--name"));
        latch.start();
        sidecar.serve(() -> {
            try {
                var nodes = client.getChildren().forPath(LATCH);
                nodes.sort(Comparator.comparingLong(Curator::number));
                if (nodes.isEmpty()) {
                    return new Sidecar.Answer(null, false, 0);
                }
                byte[] name = client.getData().forPath(LATCH + "/" + nodes.get(0));
                String leader = new String(name, StandardCharsets.UTF_8);
                return new Sidecar.Answer(leader, latch.hasLeadership(), number(nodes.get(0)) + 1);
            } catch (Exception gone) {
                // A node that has gone in between, or no connection.
                return new Sidecar.Answer(null, false, 0);
            }
        }, () -> {
            try {
                latch.close();
                client.close();
            } catch (java.io.IOException ended) {
                System.err.println(ended);
            }
        });
    }

    private static long number(String node) {
        return Long.parseLong(node.substring(node.lastIndexOf('-') + 1));
    }
}
