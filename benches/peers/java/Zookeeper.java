import java.io.File;
import java.net.InetSocketAddress;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/** One ZooKeeper server: a port and a folder. */
final class Zookeeper {
    public static void main(String[] args) throws Exception {
        File folder = new File(args[1]);
        var server = new ZooKeeperServer(folder, folder, ZooKeeperServer.DEFAULT_TICK_TIME);
        var factory = ServerCnxnFactory.createFactory(
            new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 1_000);
        factory.startup(server);
        factory.join();
    }
}
