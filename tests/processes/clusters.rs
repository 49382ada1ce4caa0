//! Two clusters whose processes find each other, as behind one Service.

use crate::harness::processes;
use crate::rounds::PATIENCE;

#[test]
fn two_clusters_on_one_list_refuse_each_other_and_elect_each_their_own() {
    let mut both = [processes(2, &[]), processes(2, &[])];
    let peers = |real: &crate::harness::Real| -> String {
        (0..2).map(|p| format!("127.0.0.1:{}", real.ports(p).peer)).collect::<Vec<_>>().join(",")
    };
    let of_others = [peers(&both[1]), peers(&both[0])];
    for (real, others) in both.iter_mut().zip(&of_others) {
        for place in 0..2 {
            real.start(place, &["--peers", others]).unwrap();
        }
    }
    let clusters = [both[0].cluster().to_owned(), both[1].cluster().to_owned()];
    for real in &both {
        let now = real.agree(0, PATIENCE).unwrap();
        // Its leader dials every candidate, and so meets the others.
        real.logged(now.leader, &["WARN", "refuses", real.cluster(), "another election"]);
        assert_eq!(real.agree(0, PATIENCE).unwrap().epoch, now.epoch);
        assert!(
            !real
                .get(now.leader, "/members")
                .unwrap()
                .1
                .contains(&format!("{}-", other(&clusters, real.cluster())))
        );
    }
}

fn other<'a>(clusters: &'a [String; 2], own: &str) -> &'a str {
    if clusters[0] == own { &clusters[1] } else { &clusters[0] }
}
