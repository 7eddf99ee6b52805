//! One number that says whether two modules hold the same bits.

use burn_core::module::{Module, ModuleVisitor, Param};
use burn_core::tensor::{Bool, Int, Tensor, TensorData};
use core::fmt;

/// A 256-bit BLAKE3 hash. `Display` and `LowerHex` are its 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The 32 bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:x}")
    }
}

impl fmt::LowerHex for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self:x})")
    }
}

/// The digest of every parameter and buffer of `module`, in visiting order: path, dtype, shape and bits of each.
///
/// Burn's `ParamId`s are random and take no part. A parameter that Burn initialises lazily is initialised by this call.
/// In training, a running state (of a batch norm, say) holds its last update apart until it is next used:
/// `digest(&model.valid())` has it in.
///
/// For each tensor the hash takes in, each text and each list after its length as 8 little-endian bytes: the path
/// (`conv1.weight`), the dtype as Rust's `Debug` prints it, the dimensions as 8 little-endian bytes each, and the
/// elements in row-major order as they lie in memory.
///
/// # Panics
///
/// When a tensor cannot be read, with the error that its operations left on it.
pub fn digest<M: Module>(module: &M) -> Digest {
    let mut visitor = DigestVisitor { hasher: blake3::Hasher::new(), path: Vec::new() };
    module.visit(&mut visitor);
    Digest(*visitor.hasher.finalize().as_bytes())
}

struct DigestVisitor {
    hasher: blake3::Hasher,
    path: Vec<String>,
}

impl DigestVisitor {
    fn tensor(&mut self, data: TensorData) {
        self.bytes(self.path.join(".").as_bytes().to_vec());
        self.bytes(format!("{:?}", data.dtype()).into_bytes());
        let dimensions = data.shape().iter().flat_map(|dimension| (*dimension as u64).to_le_bytes()).collect();
        self.bytes(dimensions);
        self.bytes(data.as_bytes().to_vec());
    }

    fn bytes(&mut self, bytes: Vec<u8>) {
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(&bytes);
    }
}

impl ModuleVisitor for DigestVisitor {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.tensor(param.val().into_data());
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.tensor(param.val().into_data());
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.tensor(param.val().into_data());
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}
