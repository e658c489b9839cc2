//! One measurement is one child process, as in bench/harness.hpp, whose JSON this prints.

const TEXT: usize = 160;

/// The measurement of a child, in memory that parent and child share.
#[repr(C)]
pub struct Sample {
    wall: f64,
    cpu: f64,
    operations: f64,
    began: f64, // of the first start and the last stop, in seconds of the monotonic clock
    ended: f64,
    counters: [(usize, f64); 8], // an index into COUNTERS, and the value
    counter_count: usize,
    error: [u8; TEXT],
    complete: bool,
}

pub const COUNTERS: [&str; 8] = [
    "bytes_per_coroutine",
    "page_table_bytes",
    "slot_bytes",
    "coroutines",
    "works",
    "guards",
    "destructors_run",
    "",
];

fn seconds(clock: libc::clockid_t) -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

pub struct Meter {
    sample: *mut Sample,
    cpu_started: f64,
    wall_started: f64,
}

impl Meter {
    fn sample(&mut self) -> &mut Sample {
        unsafe { &mut *self.sample }
    }
    pub fn start(&mut self) {
        self.cpu_started = seconds(libc::CLOCK_PROCESS_CPUTIME_ID);
        self.wall_started = seconds(libc::CLOCK_MONOTONIC);
        let now = self.wall_started;
        let s = self.sample();
        if s.began == 0.0 {
            s.began = now;
        }
    }
    pub fn stop(&mut self, operations: usize) {
        let now = seconds(libc::CLOCK_MONOTONIC);
        let wall = now - self.wall_started;
        let cpu = seconds(libc::CLOCK_PROCESS_CPUTIME_ID) - self.cpu_started;
        let s = self.sample();
        s.ended = now;
        s.wall += wall;
        s.cpu += cpu;
        s.operations += operations as f64;
    }
    pub fn counter(&mut self, name: &str, value: f64) {
        let index = COUNTERS.iter().position(|n| *n == name).expect("a known counter");
        let s = self.sample();
        s.counters[s.counter_count] = (index, value);
        s.counter_count += 1;
    }
    pub fn expect_equal(&mut self, found: u64, wanted: u64, what: &str) {
        if found != wanted {
            self.fail(&format!("checksum: {what} is {found}, not {wanted}"));
        }
    }
    pub fn fail(&mut self, why: &str) {
        let s = self.sample();
        if s.error[0] == 0 {
            let n = why.len().min(TEXT - 1);
            s.error[..n].copy_from_slice(&why.as_bytes()[..n]);
        }
    }
}

/// How a subject is run and shown.
#[derive(Clone, Copy)]
pub struct Plan {
    pub children: usize,
    pub unit: &'static str,
}

fn run_in_a_child(sample: *mut Sample, subject: &dyn Fn(&mut Meter)) {
    unsafe { std::ptr::write_bytes(sample, 0, 1) };
    let mut m = Meter { sample, cpu_started: 0.0, wall_started: 0.0 };
    unsafe {
        let child = libc::fork();
        if child == 0 {
            subject(&mut m);
            (*sample).complete = true;
            libc::_exit(0);
        }
        let mut status = 0;
        if child < 0 || libc::waitpid(child, &mut status, 0) != child {
            m.fail("no child could be started");
        } else if libc::WIFSIGNALED(status) {
            m.fail(&format!("died of signal {}", libc::WTERMSIG(status)));
        } else if !(*sample).complete {
            m.fail("left before its end");
        }
    }
}

/// Runs one case and returns it as a JSON object of Google Benchmark's form.
pub fn run_case(name: &str, plan: Plan, subject: &dyn Fn(&mut Meter)) -> (String, bool) {
    let sample = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            std::mem::size_of::<Sample>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        ) as *mut Sample
    };
    let (mut per_operation, mut wall, mut cpu, mut began) = (0.0, 0.0, 0.0, 0.0);
    let mut tail = String::new();
    let mut good = true;
    for _ in 0..plan.children {
        run_in_a_child(sample, subject);
        let s = unsafe { &*sample };
        if s.error[0] != 0 {
            let end = s.error.iter().position(|b| *b == 0).unwrap_or(TEXT);
            let why = String::from_utf8_lossy(&s.error[..end]).replace('"', "'");
            eprintln!("corosensei_bench: ERROR: {name}: {why}");
            tail = format!(", \"error_occurred\": true, \"error_message\": \"{why}\"");
            good = false;
            break;
        }
        per_operation += s.wall / s.operations.max(1.0) / plan.children as f64;
        wall += s.wall;
        cpu += s.cpu;
        if began == 0.0 {
            began = s.began;
        }
        tail = s.counters[..s.counter_count]
            .iter()
            .map(|(i, v)| format!(", \"{}\": {v}", COUNTERS[*i]))
            .collect();
    }
    let scale = if plan.unit == "ms" { 1e3 } else { 1e9 };
    let share = if wall > 0.0 { cpu / wall } else { 1.0 };
    let text = format!(
        "{{\"name\": \"{name}\", \"run_name\": \"{name}\", \"run_type\": \"iteration\", \
         \"iterations\": {}, \"real_time\": {}, \"time_unit\": \"{}\", \"cpu_share\": {share}, \
         \"began\": {began}, \"ended\": {}{tail}}}",
        plan.children,
        per_operation * scale,
        plan.unit,
        unsafe { (*sample).ended }
    );
    (text, good)
}
