//! The two peers: corosensei over its own DefaultStack (mapped, with a guard page, one for each
//! coroutine), and the same over stacks that a last-in-first-out list hands out again.

use corosensei::stack::{DefaultStack, Stack, StackPointer};
use corosensei::Coroutine;
use std::io;
use std::mem::ManuallyDrop;

pub type Co<P> = Coroutine<(), (), (), <P as Peer>::Stack>;

pub trait Peer: 'static {
    const NAME: &'static str;
    type Stack: Stack + 'static;
    fn stack(bytes: usize) -> io::Result<Self::Stack>;
}

pub struct Plain;

impl Peer for Plain {
    const NAME: &'static str = "corosensei";
    type Stack = DefaultStack;
    fn stack(bytes: usize) -> io::Result<DefaultStack> {
        DefaultStack::new(bytes)
    }
}

pub struct Pooled;

/// The stacks that were returned. A measurement is one thread of one child process and uses one size.
struct Pool(std::cell::UnsafeCell<Vec<DefaultStack>>);
unsafe impl Sync for Pool {}
static POOL: Pool = Pool(std::cell::UnsafeCell::new(Vec::new()));

pub struct PooledStack(ManuallyDrop<DefaultStack>);

impl Drop for PooledStack {
    fn drop(&mut self) {
        unsafe { (*POOL.0.get()).push(ManuallyDrop::take(&mut self.0)) }
    }
}

unsafe impl Stack for PooledStack {
    fn base(&self) -> StackPointer {
        self.0.base()
    }
    fn limit(&self) -> StackPointer {
        self.0.limit()
    }
}

impl Peer for Pooled {
    const NAME: &'static str = "corosensei.pooled";
    type Stack = PooledStack;
    fn stack(bytes: usize) -> io::Result<PooledStack> {
        let stack = match unsafe { (*POOL.0.get()).pop() } {
            Some(stack) => stack,
            None => DefaultStack::new(bytes)?,
        };
        Ok(PooledStack(ManuallyDrop::new(stack)))
    }
}
