//! Links the static program with packed relocations, which takes a fortieth of its size. A program that the
//! system's C library loads stays without: not each library reads them.

fn main() {
    println!("cargo::rerun-if-changed=src/build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let is_static = std::env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|all| all.contains("crt-static"));
    // GNU ld packs them for this processor only.
    if is_static && target("ENV") == "gnu" && target("ARCH") == "x86_64" {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
