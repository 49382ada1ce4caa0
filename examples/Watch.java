// Says when the work may run: while the sidecar's last answer says that this process leads, and holds.
import java.net.URI;
import java.net.http.*;
import java.nio.file.*;
import static java.net.http.HttpResponse.BodyHandlers.ofString;
import static java.time.Duration.ofMillis;
import static java.util.concurrent.TimeUnit.MILLISECONDS;
import java.util.regex.Pattern;

public class Watch {
    static final int SILENCE = 1000, PAUSE = 20, STOP = 120; // ms: no answer; a pause; it and the work's end
    // No text looks like one of these: JSON escapes each quote within it.
    static final Pattern FIELDS = Pattern.compile("(?=.*\"is_leader\":(\\w+))(?=.*\"epoch\":(\\d+))"
        + "(?=.*\"valid_for_ms\":(\\w+))(?=.*\"version\":\"([^\"]+)\")(?=.*\"boottime_ms\":(\\d+))");

    public static void main(String[] args) throws Exception {
        String url = System.getenv().getOrDefault("BELLWETHER_URL", "http://127.0.0.1:4040"), after = "";
        var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        long now = 0, left, until = 0, epoch = 0, token = 0, leads = 0;
        for (var classic = true; ; leads = token, Thread.sleep(PAUSE)) {
            left = until > now ? Math.min(until - now, SILENCE) : SILENCE;
            var watch = HttpRequest.newBuilder(URI.create(url + "/watch?timeout=300ms&valid_for=600ms" + after));
            var answer = FIELDS.matcher(client.sendAsync(watch.timeout(ofMillis(left)).build(), ofString())
            .thenApply(r -> r.body()).completeOnTimeout("", left, MILLISECONDS).exceptionally(e -> "").join());
            var uptime = Files.readString(Path.of("/proc/uptime")).split(" ")[0]; // CLOCK_BOOTTIME in seconds
            now = Long.parseLong(uptime.replace(".", "")) * 10 + 10; // rounded up
            if (answer.find()) {
                classic = answer.group(3).equals("null");
                epoch = Long.parseLong(answer.group(2));
                after = "&after=" + answer.group(4);
                long asOf = Long.parseLong(answer.group(5)); // less a tenth: CLOCK_MONOTONIC_RAW is not read
                until = classic ? now + SILENCE : asOf + Long.parseLong(answer.group(3)) * 9 / 10 - STOP;
                if (answer.group(1).equals("false") || asOf > now) until = 0; // or it is a foreign clock
            } else if (classic) until = 0; // else the last answer may still hold
            token = until > now ? epoch : 0; // the fencing token of all that is written
            if (leads != 0 && leads != token) System.out.println("stops");
            if (token != 0 && leads != token) System.out.println("leads epoch=" + token);
        }
    }
}
