// Says when the work may run: while the sidecar's last answer says that this process leads, and holds.
import java.net.URI;
import java.net.http.*;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.*;
import java.util.concurrent.*;
import java.util.regex.*;

public class Watch {
    record Lines(BlockingQueue<String> lines) implements Flow.Subscriber<String> {
        public void onSubscribe(Flow.Subscription all) { all.request(Long.MAX_VALUE); }
        public void onNext(String line) { lines.add(line); }
        public void onError(Throwable error) {}
        public void onComplete() {}
    }
    static final int SILENCE = 2000, STOP = 100; // ms: no answer; the work's own end
    // A name cannot look like these: JSON escapes each quote within it.
    static final Pattern FIELDS = Pattern.compile("data: (?=.*\"is_leader\":(\\w+))(?=.*\"epoch\":(\\d+))"
        + "(?=.*\"valid_for_ms\":(\\w+))(?=.*\"boottime_ms\":(\\d+))");
    static long leads = 0;

    static synchronized void work(long epoch) {
        if (leads != 0 && leads != epoch) System.out.println("stops");
        if (epoch != 0 && leads != epoch) System.out.println("leads epoch=" + epoch); // the fencing token
        leads = epoch;
    }

    /** For how many milliseconds from now on this process leads. */
    static long left(Matcher answer) throws Exception {
        if (answer.group(1).equals("false")) return 0;
        if (answer.group(3).equals("null")) return SILENCE; // classic
        // CLOCK_BOOTTIME, rounded down to 10 ms. A timer goes on from there: hence the tenth.
        var uptime = Double.parseDouble(Files.readString(Path.of("/proc/uptime")).split(" ")[0]);
        var passed = (long) (uptime * 1000) + 11 - Long.parseLong(answer.group(4));
        return passed < 0 ? 0 : Long.parseLong(answer.group(3)) * 9 / 10 - passed - STOP; // 0: another clock
    }

    public static void main(String[] args) throws Exception {
        var url = System.getenv().getOrDefault("BELLWETHER_URL", "http://127.0.0.1:4040");
        var request = HttpRequest.newBuilder(URI.create(url + "/watch?every=500ms"))
            .version(HttpClient.Version.HTTP_1_1).header("Accept", "text/event-stream").build();
        var client = HttpClient.newHttpClient();
        var timer = Executors.newSingleThreadScheduledExecutor();
        Future<?> end = timer.submit(() -> work(0));
        for (var classic = true; ; Thread.sleep(1000)) {
            var lines = new LinkedBlockingQueue<String>();
            var stream = client.sendAsync(request, BodyHandlers.fromLineSubscriber(new Lines(lines)));
            stream.whenComplete((response, error) -> lines.add("end"));
            for (var line = ""; line != null && !line.equals("end");
                    line = lines.poll(SILENCE, TimeUnit.MILLISECONDS)) {
                var answer = FIELDS.matcher(line);
                if (!answer.find()) continue;
                end.cancel(false);
                classic = answer.group(3).equals("null");
                work(left(answer) > 0 ? Long.parseLong(answer.group(2)) : 0);
                end = timer.schedule(() -> work(0), left(answer), TimeUnit.MILLISECONDS);
            }
            stream.cancel(true);
            if (classic) work(0);
        }
    }
}
