//! Digests of the functions' results: equal for the reference and for every device.
//!
//! `everywhere` computes them; where a function's bits were meant to change, it prints the new ones, and the changelog says
//! so under **Bits**. An empty one has not been computed: its tests with `heavy` fail, and print it.

/// A function; the digest of its results of the sample, and of all 2^32 arguments.
pub const DIGESTS: [(&str, &str, &str); 16] = [
    ("exp", "79b82678a71baedc7e762e6c88094980", "20d3bbb33bd2a70e1aea4e5a0b4e4ded"),
    ("log", "6c21968de24622ba67f419e9e28ed7ee", "c6ddf5e1e24089cee64f9a5767be78da"),
    ("log1p", "b310cc439f413d7588d55d40273bf166", "945b9bc49f771122a0a42c2276a15c83"),
    ("sinh", "ee9225eb653f41762af12f95b0e18226", "17563d8170fb88293078cd1df633119a"),
    ("cosh", "c43b035b5438970193bdf92946ada463", "fec6c7c32b90611a81c0f5e8ac14c592"),
    ("tanh", "7e60b3ca3491994765fde802eaeac32b", "55c5030fa75ddc9c9f01cdf04a536a00"),
    ("asinh", "9d640b256e44e21ffaf6ae717c3d2c9e", "28ea6670a46efc350e71edc3353b8db2"),
    ("acosh", "b3bdf3ee017335ace2f18a41c70f909f", "357d868d069d15a480f92e1ccdfd2e1f"),
    ("atanh", "c7deb0959f6d5020f9bbd7a0de15bf2d", "465b2d2f62e7fbf014cded988c47af26"),
    ("sin", "3e28886ff87c2c9f621b6eb2c75429bd", "855d2600065042556be754f2e2fba3cc"),
    ("cos", "6d69cc30d49614dd9b2def30ca97e49d", "e437eccda810720cf86b66d6bb2eff9b"),
    ("tan", "9fa22fa6b0e5774b298f2707f63b2259", "9296696776dda72c6a6d750aec037d82"),
    ("asin", "76beba79c7ff84e9c8895335f862e368", "d107fc6e4d0e2937a69f5e1d2c5a812e"),
    ("acos", "92f2943f2ac52a66fa67620dc00f1c7f", "acdf349645f833bd832f31cf21d4cc26"),
    ("atan", "6fda07255b9e720c18dba06290f66444", "e22e04ad29285e6d4a90394ee83cf255"),
    ("erf", "61ebb68f8dfad109c5d0adedd98de7d5", "74ee5fa1da2fdbb6320a067ec6d3d6aa"),
];
