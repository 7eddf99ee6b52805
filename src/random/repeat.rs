//! The same random numbers again, for an operation that runs more than once.

use crate::context::{self, Draw, Repeated};
use core::mem;

/// Runs `body` with the streams that `draws` has, in their order; what it draws beyond them is added, here and where
/// this is called in another `repeatable`.
pub(crate) fn repeatable<T>(draws: &mut Vec<Draw>, body: impl FnOnce() -> T) -> T {
    let (known, repeated) = (draws.len(), Repeated { draws: mem::take(draws), next: 0 });
    let result = context::scoped(
        |context| &mut context.repeated,
        Some(repeated),
        || {
            let result = body();
            if let Some(repeated) = context::with(|context| context.repeated.take()) {
                *draws = repeated.draws;
            }
            result
        },
    );
    context::with(|context| {
        if let Some(outer) = &mut context.repeated {
            outer.draws.extend_from_slice(&draws[known..]);
            outer.next += draws.len() - known;
        }
    });
    result
}

/// The stream that the operation being repeated drew here before; else that of `draw`, remembered.
pub(super) fn again<E>(draw: impl FnOnce() -> Result<Draw, E>) -> Result<Draw, E> {
    let known = context::with(|context| {
        let repeated = context.repeated.as_mut()?;
        let known = repeated.draws.get(repeated.next).copied()?;
        repeated.next += 1;
        Some(known)
    });
    match known {
        Some(known) => Ok(known),
        None => {
            let drawn = draw()?;
            context::with(|context| {
                if let Some(repeated) = &mut context.repeated {
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
    use super::{again, repeatable};
    use crate::context::Draw;

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
        let (mut inner, mut outer) = (Vec::new(), Vec::new());
        repeatable(&mut outer, || {
            repeatable(&mut inner, &mut draw).expect("it draws");
            repeatable(&mut inner, &mut draw)
        })
        .expect("it draws");
        assert_eq!((&inner, outer.len()), (&outer, 1), "drawn once, told to both");
    }
}
