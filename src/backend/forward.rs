//! The macro that forwards methods to the inner backend.

/// Methods that run on the inner backend unchanged, after the [reason](crate::catalogue::reason) that is safe.
macro_rules! forward {
    ($reason:ident: $(fn $method:ident($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)?;)+) => {$(
        fn $method($($argument: $type),*) $(-> $output)? {
            const _: &str = crate::catalogue::reason::$reason;
            burn_cubecl::CubeBackend::$method($($argument),*)
        }
    )+};
}

pub(super) use forward;
