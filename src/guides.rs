//! Runs the code of the guides, as that of the README, which is the crate's documentation.

macro_rules! guides {
    ($($name:ident = $path:literal;)*) => {$(
        #[doc = include_str!($path)]
        mod $name {}
    )*};
}

guides! {
    debugging = "../docs/debugging.md";
    extending = "../docs/extending.md";
    from_keras_and_pytorch = "../docs/from-keras-and-pytorch.md";
    guarantee = "../docs/guarantee.md";
    porting = "../docs/porting.md";
    randomness = "../docs/randomness.md";
    reproducible_results = "../docs/reproducible-results.md";
}
