//! The bodies of bench/bodies.hpp in Rust, and the world they act on.

use crate::peer::{Co, Peer};
use corosensei::Yielder;
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::io;

#[derive(Default)]
pub struct World {
    pub resumes: u64,
    pub built: u64,
    pub destroyed: u64,
    pub place: usize,
    pub finishing: bool,
}

struct Shared(UnsafeCell<Option<World>>);
unsafe impl Sync for Shared {}
static WORLD: Shared = Shared(UnsafeCell::new(Some(World {
    resumes: 0,
    built: 0,
    destroyed: 0,
    place: 0,
    finishing: false,
})));

/// The world of this child. One thread; never borrowed across a switch.
#[inline(always)]
#[allow(clippy::mut_from_ref)]
pub fn world() -> &'static mut World {
    unsafe { (*WORLD.0.get()).as_mut().unwrap_unchecked() }
}

type Y = Yielder<(), ()>;

pub struct Counted;

impl Counted {
    fn new() -> Counted {
        world().built += 1;
        Counted
    }
}
impl Drop for Counted {
    fn drop(&mut self) {
        world().destroyed += 1;
    }
}

fn counting<const WEIGHT: u64>(y: &Y, _: ()) {
    loop {
        world().resumes += WEIGHT;
        y.suspend(());
        if world().finishing {
            break;
        }
    }
}

#[inline(never)]
fn yield_holding_an_object(y: &Y) {
    let object = Counted::new();
    black_box(&object);
    y.suspend(());
}

#[inline(never)]
fn yield_holding_nothing(y: &Y) {
    y.suspend(());
    black_box(y);
}

pub type Make<P> = fn(usize) -> io::Result<Co<P>>;

#[inline(never)]
pub fn make_counting<P: Peer, const WEIGHT: u64>(bytes: usize) -> io::Result<Co<P>> {
    Ok(Co::<P>::with_stack(P::stack(bytes)?, counting::<WEIGHT>))
}

#[inline(never)]
pub fn make_holding<P: Peer>(bytes: usize) -> io::Result<Co<P>> {
    Ok(Co::<P>::with_stack(P::stack(bytes)?, |y: &Y, _| {
        world().resumes += 1;
        yield_holding_an_object(y);
    }))
}

#[inline(never)]
pub fn make_empty_handed<P: Peer>(bytes: usize) -> io::Result<Co<P>> {
    Ok(Co::<P>::with_stack(P::stack(bytes)?, |y: &Y, _| {
        world().resumes += 1;
        yield_holding_nothing(y);
    }))
}

#[inline(never)]
pub fn make_locating<P: Peer>(bytes: usize) -> io::Result<Co<P>> {
    Ok(Co::<P>::with_stack(P::stack(bytes)?, |y: &Y, _| {
        let here = 0u8;
        world().place = black_box(&here) as *const u8 as usize;
        y.suspend(());
    }))
}

pub const SKYNET_LEAVES: u64 = 1_000_000;
pub const SKYNET_SUM: u64 = 499_999_500_000;

pub fn skynet<P: Peer>(bytes: usize, number: u64, leaves: u64) -> u64 {
    let mut result = 0u64;
    let to = &mut result as *mut u64 as usize;
    let stack = P::stack(bytes).expect("a stack");
    let mut node = Co::<P>::with_stack(stack, move |_: &Y, _| {
        let sum = if leaves == 1 {
            number
        } else {
            let part = leaves / 10;
            (0..10).map(|i| skynet::<P>(bytes, number + i * part, part)).sum()
        };
        unsafe { *(to as *mut u64) = sum };
    });
    node.resume(());
    drop(node);
    black_box(result)
}
