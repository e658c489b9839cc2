//! The subjects of bench/*.cpp, written once for both peers.

use crate::bodies::*;
use crate::harness::{Meter, Plan};
use crate::peer::{Co, Peer};
use std::hint::black_box;
use std::mem::MaybeUninit;

const KIB: usize = 1024;

/// A row of slots, touched before anything is measured; objects that are alive at its end are not destroyed.
struct Row<P: Peer>(Vec<MaybeUninit<Co<P>>>);

impl<P: Peer> Row<P> {
    fn new(count: usize) -> Row<P> {
        let mut slots = Vec::with_capacity(count);
        for _ in 0..count {
            slots.push(MaybeUninit::uninit());
        }
        let bytes = count * std::mem::size_of::<Co<P>>();
        unsafe { std::ptr::write_bytes(slots.as_mut_ptr() as *mut u8, 0, bytes) };
        black_box(slots.as_mut_ptr());
        Row(slots)
    }
    fn len(&self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn emplace(&mut self, i: usize, make: Make<P>, bytes: usize) -> bool {
        match make(bytes) {
            Ok(c) => {
                self.0[i].write(c);
                true
            }
            Err(_) => false,
        }
    }
    #[inline(always)]
    fn resume(&mut self, i: usize) {
        unsafe { self.0[i].assume_init_mut() }.resume(());
    }
    #[inline(always)]
    fn destroy(&mut self, i: usize) {
        unsafe { self.0[i].assume_init_drop() }
    }
    fn create_all(&mut self, make: Make<P>, bytes: usize, enter: bool) {
        for i in 0..self.len() {
            assert!(self.emplace(i, make, bytes), "no more stacks");
            if enter {
                self.resume(i);
            }
        }
    }
    fn resume_all(&mut self) {
        for i in 0..self.len() {
            self.resume(i);
        }
    }
    fn destroy_all(&mut self) {
        for i in 0..self.len() {
            self.destroy(i);
        }
    }
}

fn cold<P: Peer>(m: &mut Meter, count: usize, bytes: usize, enter: bool) {
    let make: Make<P> = make_counting::<P, 1>;
    Row::<P>::new(1).create_all(make, bytes, true);
    let mut row = Row::<P>::new(count);
    m.start();
    row.create_all(make, bytes, enter);
    m.stop(count);
    m.expect_equal(world().resumes, 1 + if enter { count as u64 } else { 0 }, "resumes");
}

/// As in bench/create.cpp.
const WARM_UP_ROUNDS: usize = 2;

fn warm<P: Peer>(m: &mut Meter, count: usize, bytes: usize, enter: bool, rounds: usize) {
    let mut row = Row::<P>::new(count);
    for round in 0..WARM_UP_ROUNDS + rounds {
        world().finishing = false;
        if round >= WARM_UP_ROUNDS {
            m.start();
        }
        row.create_all(make_counting::<P, 1>, bytes, enter);
        if round >= WARM_UP_ROUNDS {
            m.stop(count);
        }
        if !enter {
            row.resume_all();
        }
        world().finishing = true;
        row.resume_all();
        row.destroy_all();
    }
    m.expect_equal(world().resumes, (count * (WARM_UP_ROUNDS + rounds)) as u64, "resumes");
}

fn in_order<P: Peer>(m: &mut Meter, count: usize, bytes: usize, rounds: usize) {
    let mut row = Row::<P>::new(count);
    row.create_all(make_counting::<P, 1>, bytes, true);
    row.resume_all();
    m.start();
    for _ in 0..rounds {
        row.resume_all();
    }
    m.stop(count * rounds);
    m.expect_equal(world().resumes, (count * (rounds + 2)) as u64, "resumes");
}

/// std::mt19937 of the same seed, so that the order is the one of bench/switch.cpp.
struct Mt19937 {
    state: [u32; 624],
    at: usize,
}
impl Mt19937 {
    fn new(seed: u32) -> Mt19937 {
        let mut state = [seed; 624];
        for i in 1..624 {
            let before = state[i - 1];
            state[i] = 1812433253u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(i as u32);
        }
        Mt19937 { state, at: 624 }
    }
    fn next(&mut self) -> u32 {
        if self.at == 624 {
            for i in 0..624 {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % 624] & 0x7fff_ffff);
                let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + 397) % 624] ^ (y >> 1) ^ odd;
            }
            self.at = 0;
        }
        let mut y = self.state[self.at];
        self.at += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }
}

fn shuffled(count: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    let mut random = Mt19937::new(20240229);
    for i in (1..count).rev() {
        order.swap(i, random.next() as usize % (i + 1));
    }
    order
}

fn in_shuffled_order<P: Peer>(
    m: &mut Meter,
    count: usize,
    bytes: usize,
    rounds: usize,
    kinds: &[Make<P>],
) {
    let order = shuffled(count);
    let mut row = Row::<P>::new(count);
    let mut weight = 0;
    for i in 0..count {
        assert!(row.emplace(i, kinds[i % kinds.len()], bytes), "no more stacks");
        row.resume(i);
        weight += (i % kinds.len() + 1) as u64;
    }
    let mut run = || {
        for i in &order {
            row.resume(*i as usize);
        }
    };
    run();
    m.start();
    for _ in 0..rounds {
        run();
    }
    m.stop(count * rounds);
    m.expect_equal(world().resumes, weight * (rounds as u64 + 2), "weighted resumes");
}

fn sixteen_kinds<P: Peer>() -> [Make<P>; 16] {
    [
        make_counting::<P, 1>,
        make_counting::<P, 2>,
        make_counting::<P, 3>,
        make_counting::<P, 4>,
        make_counting::<P, 5>,
        make_counting::<P, 6>,
        make_counting::<P, 7>,
        make_counting::<P, 8>,
        make_counting::<P, 9>,
        make_counting::<P, 10>,
        make_counting::<P, 11>,
        make_counting::<P, 12>,
        make_counting::<P, 13>,
        make_counting::<P, 14>,
        make_counting::<P, 15>,
        make_counting::<P, 16>,
    ]
}

fn finish<P: Peer>(m: &mut Meter, count: usize, bytes: usize, rounds: usize, destroy: bool) {
    let mut row = Row::<P>::new(count);
    for round in 0..=rounds {
        world().finishing = false;
        row.create_all(make_counting::<P, 1>, bytes, true);
        world().finishing = true;
        let measured = round > 0;
        if measured && !destroy {
            m.start();
        }
        row.resume_all();
        if measured && !destroy {
            m.stop(count);
        }
        if measured && destroy {
            m.start();
        }
        row.destroy_all();
        if measured && destroy {
            m.stop(count);
        }
    }
    m.expect_equal(world().resumes, (count * (rounds + 1)) as u64, "resumes");
}

fn kill<P: Peer>(m: &mut Meter, count: usize, bytes: usize, rounds: usize, holding: bool) {
    let make: Make<P> = if holding { make_holding::<P> } else { make_empty_handed::<P> };
    let mut row = Row::<P>::new(count);
    for round in 0..=rounds {
        row.create_all(make, bytes, true);
        if round > 0 {
            m.start();
        }
        row.destroy_all();
        if round > 0 {
            m.stop(count);
        }
    }
    let lives = (count * (rounds + 1)) as u64;
    m.expect_equal(world().resumes, lives, "resumes");
    if holding {
        m.expect_equal(world().built, lives, "objects built");
        m.expect_equal(world().destroyed, lives, "objects destroyed");
        m.counter("destructors_run", world().destroyed as f64 / world().built as f64);
    }
}

fn skynet_once<P: Peer>(m: &mut Meter) {
    m.start();
    let sum = skynet::<P>(16 * KIB, 0, SKYNET_LEAVES);
    m.stop(1);
    m.expect_equal(sum, SKYNET_SUM, "sum");
}

/// The number behind a name in one of the kernel's "Name:  123 kB" files, in bytes.
fn proc_bytes(file: &str, name: &str) -> f64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("0");
    line.split_whitespace().next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
}

fn fill<P: Peer>(row: &mut Row<P>, make: Make<P>, bytes: usize, mut each: impl FnMut(usize)) -> usize {
    for i in 0..row.len() {
        if !row.emplace(i, make, bytes) {
            return i;
        }
        row.resume(i);
        each(i);
    }
    row.len()
}

fn rss<P: Peer>(m: &mut Meter, count: usize, bytes: usize) {
    let resident = || proc_bytes("/proc/self/smaps_rollup", "Rss:");
    let tables = || proc_bytes("/proc/self/status", "VmPTE:");
    Row::<P>::new(1).create_all(make_counting::<P, 1>, bytes, true);
    let mut row = Row::<P>::new(count);
    let (resident_before, tables_before) = (resident(), tables());
    m.start();
    let made = fill(&mut row, make_counting::<P, 1>, bytes, |_| {});
    m.stop(made);
    m.counter("bytes_per_coroutine", (resident() - resident_before) / made as f64);
    m.counter("page_table_bytes", (tables() - tables_before) / made as f64);
    m.counter("slot_bytes", std::mem::size_of::<Co<P>>() as f64);
    m.counter("coroutines", made as f64);
    m.expect_equal(world().resumes, made as u64 + 1, "resumes");
}

/// Lets the kernel read a byte: it returns EFAULT where a load would end the process.
fn can_read(ends: &[i32; 2], address: usize) -> bool {
    let mut byte = 0u8;
    unsafe {
        libc::write(ends[1], address as *const libc::c_void, 1) == 1
            && libc::read(ends[0], &mut byte as *mut u8 as *mut libc::c_void, 1) == 1
    }
}

fn guarded<P: Peer>(m: &mut Meter, count: usize, bytes: usize) {
    let mut ends = [0i32; 2];
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let mut places = vec![0usize; count];
    let mut row = Row::<P>::new(count);
    m.start();
    let made = fill(&mut row, make_locating::<P>, bytes, |i| places[i] = world().place);
    m.stop(made);
    let guards = places[..made]
        .iter()
        .filter(|place| {
            (4096..=bytes + 4096).step_by(4096).any(|down| !can_read(&ends, **place - down))
        })
        .count();
    m.counter("works", if made == count && guards == count { 1.0 } else { 0.0 });
    m.counter("coroutines", made as f64);
    m.counter("guards", guards as f64);
}

pub type Subject = (&'static str, Plan, Box<dyn Fn(&mut Meter)>);

/// Every subject/variant that this peer supports, in the order of the table.
pub fn all<P: Peer>() -> Vec<Subject> {
    let once = Plan { children: 1, unit: "ns" };
    let several = Plan { children: 9, unit: "ns" };
    let whole = Plan { children: 1, unit: "ms" };
    let k128 = 128 * KIB;
    vec![
        ("create/1000x128K", several, Box::new(move |m| cold::<P>(m, 1000, k128, false))),
        ("create_enter/1000x128K", several, Box::new(move |m| cold::<P>(m, 1000, k128, true))),
        ("create_enter/30000x64K", once, Box::new(|m| cold::<P>(m, 30000, 64 * KIB, true))),
        ("create_warm/1000x128K", once, Box::new(move |m| warm::<P>(m, 1000, k128, false, 20))),
        ("create_enter_warm/1000x128K", once, Box::new(move |m| warm::<P>(m, 1000, k128, true, 20))),
        ("switch/1x16K", once, Box::new(|m| in_order::<P>(m, 1, 16 * KIB, 1_000_000))),
        ("switch/1000x128K", once, Box::new(move |m| in_order::<P>(m, 1000, k128, 1000))),
        ("switch/30000x64K", once, Box::new(|m| in_order::<P>(m, 30000, 64 * KIB, 20))),
        (
            "switch_hetero/1000x128K",
            once,
            Box::new(move |m| in_shuffled_order::<P>(m, 1000, k128, 1000, &sixteen_kinds::<P>())),
        ),
        (
            "switch_shuffled/30000x64K",
            once,
            Box::new(|m| {
                in_shuffled_order::<P>(m, 30000, 64 * KIB, 20, &[make_counting::<P, 1>])
            }),
        ),
        ("last_switch/1000x128K", once, Box::new(move |m| finish::<P>(m, 1000, k128, 20, false))),
        ("destroy/1000x128K", once, Box::new(move |m| finish::<P>(m, 1000, k128, 20, true))),
        ("kill/1000x128K", once, Box::new(move |m| kill::<P>(m, 1000, k128, 5, true))),
        ("kill_empty/1000x128K", once, Box::new(move |m| kill::<P>(m, 1000, k128, 5, false))),
        ("skynet/1M", whole, Box::new(|m| skynet_once::<P>(m))),
        ("rss/100000", once, Box::new(|m| rss::<P>(m, 100_000, 64 * KIB))),
        ("guarded/100000", once, Box::new(|m| guarded::<P>(m, 100_000, 16 * KIB))),
    ]
}
