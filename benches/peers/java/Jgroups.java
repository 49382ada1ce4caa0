import java.util.ArrayList;
import java.util.List;
import org.jgroups.JChannel;
import org.jgroups.View;
import org.jgroups.protocols.FD_ALL3;

/** JGroups with its own tcp.xml: the coordinator of a view leads, and a view's number is the epoch. */
final class Jgroups {
    public static void main(String[] args) throws Exception {
        var sidecar = new Sidecar(args);
        String[] listen = sidecar.flag("--listen").split(":");
        List<String> hosts = new ArrayList<>();
        for (String peer : sidecar.peers()) {
            hosts.add(peer.replace(":", "[") + "]");
        }
        System.setProperty("jgroups.bind_addr", listen[0]);
        System.setProperty("jgroups.bind_port", listen[1]);
        System.setProperty("jgroups.tcpping.initial_hosts", String.join(",", hosts));
        System.setProperty("jgroups.tcp.port_range", "0");
        var channel = new JChannel("tcp.xml");
        channel.setName(sidecar.flag("--name"));
        if (sidecar.fast()) {
            var stack = channel.getProtocolStack();
            stack.removeProtocol("VERIFY_SUSPECT2");
            FD_ALL3 detector = stack.findProtocol(FD_ALL3.class);
            detector.setTimeout(250);
            detector.setInterval(50);
        }
        channel.connect(sidecar.flag("--election"));
        sidecar.serve(() -> {
            View view = channel.getView();
            if (view == null) {
                return new Sidecar.Answer(null, false, 0);
            }
            boolean leads = view.getCoord().equals(channel.getAddress());
            return new Sidecar.Answer(view.getCoord().toString(), leads, view.getViewId().getId());
        }, channel::close);
    }
}
