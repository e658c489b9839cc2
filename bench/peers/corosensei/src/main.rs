//! The comparison's Rust peer: corosensei, measured as bench/*.cpp measures the other peers, once per run.
//!
//!     corosensei_bench [subject/variant[/peer] ...]      all, unless some are named
//!
//! prints the cases as Google Benchmark's JSON; tools/bench_report.py merges them.

mod bodies;
mod harness;
mod peer;
mod subjects;

fn run<P: peer::Peer>(wanted: &[String], lines: &mut Vec<String>) -> bool {
    let mut good = true;
    for (name, plan, subject) in subjects::all::<P>() {
        let case = format!("{name}/{}", P::NAME);
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name || *w == case) {
            continue;
        }
        let (line, ok) = harness::run_case(&case, plan, &*subject);
        lines.push(line);
        good = good && ok;
    }
    good
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut lines = Vec::new();
    let plain = run::<peer::Plain>(&wanted, &mut lines);
    let pooled = run::<peer::Pooled>(&wanted, &mut lines);
    println!("{{\"context\": {{}}, \"benchmarks\": [\n{}\n]}}", lines.join(",\n"));
    std::process::exit(if plain && pooled { 0 } else { 1 });
}
