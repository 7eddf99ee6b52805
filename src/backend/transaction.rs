//! Reads of several tensors at once: one wait for each device.

use super::{Deterministic, adapters};
use burn_backend::ExecutionError;
use burn_backend::ops::{TransactionOps, TransactionPrimitive, TransactionPrimitiveData};
use burn_cubecl::CubeBackend;

impl TransactionOps<Self> for Deterministic<CubeBackend> {
    fn tr_execute(
        transaction: TransactionPrimitive<Self>,
    ) -> impl Future<Output = Result<TransactionPrimitiveData, ExecutionError>> + Send {
        let TransactionPrimitive { read_floats, read_qfloats, read_ints, read_bools, .. } = transaction;
        let transaction = TransactionPrimitive::new(read_floats, read_qfloats, read_ints, read_bools);
        adapters::indices::read_all_checked(transaction, CubeBackend::tr_execute)
    }
}
