import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.function.Supplier;

/** The command line and the `/leader` of bellwether, so that one prober measures both. */
final class Sidecar {
    /** What `/leader` answers; a leader of null is none. */
    record Answer(String leader, boolean leads, long epoch) {}

    private final Map<String, String> flags = new HashMap<>();

    /** Reads `run --flag value ...`. The flag `--fast` has no value. */
    Sidecar(String[] args) {
        for (int at = 1; at < args.length; at++) {
            if (args[at].equals("--fast")) {
                flags.put("--fast", "");
            } else if (at + 1 < args.length) {
                flags.put(args[at], args[++at]);
            }
        }
    }

    String flag(String name) {
        return flags.get(name);
    }

    boolean fast() {
        return flags.containsKey("--fast");
    }

    String[] peers() {
        return flag("--peers").split(",");
    }

    /** Answers until SIGTERM, and then stops in order. */
    void serve(Supplier<Answer> answer, Runnable stop) throws Exception {
        String[] http = flag("--http").split(":");
        var server = HttpServer.create(new InetSocketAddress(http[0], Integer.parseInt(http[1])), 0);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/leader", exchange -> {
            Answer now = answer.get();
            String leader = now.leader() == null ? "null"
                : "{\"id\":\"" + now.leader() + "\",\"name\":\"" + now.leader() + "\"}";
            byte[] body = ("{\"leader\":" + leader + ",\"is_leader\":" + now.leads() + ",\"epoch\":"
                + now.epoch() + "}").getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        Runtime.getRuntime().addShutdownHook(new Thread(stop));
        server.start();
        Thread.currentThread().join();
    }
}
