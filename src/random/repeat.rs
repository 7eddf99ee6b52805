//! The same random numbers again, for an operation that runs more than once.

use core::cell::RefCell;

/// The key and the stream of one random operation.
pub(crate) type Draw = ([u8; 32], u64);

thread_local! {
    static REPEATED: RefCell<Option<Repeated>> = const { RefCell::new(None) };
}

struct Repeated {
    draws: Vec<Draw>,
    next: usize,
}

/// Runs `body` with the streams that `draws` has, in their order; what it draws beyond them is added.
pub(crate) fn repeatable<T>(draws: &mut Vec<Draw>, body: impl FnOnce() -> T) -> T {
    struct Reset(Option<Repeated>);
    impl Drop for Reset {
        fn drop(&mut self) {
            REPEATED.set(self.0.take());
        }
    }
    let before = REPEATED.replace(Some(Repeated { draws: core::mem::take(draws), next: 0 }));
    let _reset = Reset(before);
    let result = body();
    if let Some(repeated) = REPEATED.take() {
        *draws = repeated.draws;
    }
    result
}

/// The stream that the operation being repeated drew here before; else that of `draw`, remembered.
pub(super) fn again<E>(draw: impl FnOnce() -> Result<Draw, E>) -> Result<Draw, E> {
    let known = REPEATED.with_borrow_mut(|repeated| {
        let repeated = repeated.as_mut()?;
        let known = repeated.draws.get(repeated.next).copied()?;
        repeated.next += 1;
        Some(known)
    });
    match known {
        Some(known) => Ok(known),
        None => {
            let drawn = draw()?;
            REPEATED.with_borrow_mut(|repeated| {
                if let Some(repeated) = repeated {
                    repeated.draws.push(drawn);
                    repeated.next += 1;
                }
            });
            Ok(drawn)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Draw, again, repeatable};

    #[test]
    fn what_was_drawn_is_drawn_again() {
        let mut counter = 0;
        let mut draw = || {
            again::<()>(|| {
                counter += 1;
                Ok(([0; 32], counter))
            })
            .map(|(_, stream)| stream)
        };
        let mut draws: Vec<Draw> = Vec::new();
        let first = repeatable(&mut draws, || [draw(), draw()]);
        assert_eq!(first, [Ok(1), Ok(2)]);
        assert_eq!(repeatable(&mut draws, || [draw(), draw()]), first);
        assert_eq!(draw(), Ok(3), "outside of it streams go on");
    }
}
