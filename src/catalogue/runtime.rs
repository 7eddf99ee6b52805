//! `Backend`, `TransactionOps`, `DistributedOps`.

use super::entry::{Entry, composed, forwarded, refused};
use super::reason;

/// The methods of `Backend`.
pub(super) const BACKEND: &[Entry] = &[
    composed("ad_enabled", "nothing: `false`"),
    forwarded("memory_persistent_allocations", reason::MANAGEMENT),
    forwarded("memory_cleanup", reason::MANAGEMENT),
    forwarded("memory_pool_report", reason::MANAGEMENT),
    forwarded("memory_pool_usage", reason::MANAGEMENT),
    forwarded("name", reason::MANAGEMENT),
    forwarded("seed", reason::SEED),
    forwarded("sync", reason::MANAGEMENT),
    forwarded("profile", reason::MANAGEMENT),
    forwarded("profile_start", reason::MANAGEMENT),
    forwarded("profile_end", reason::MANAGEMENT),
    forwarded("profile_abandon", reason::MANAGEMENT),
    forwarded("graph_prepare", reason::REPLAY),
    forwarded("graph_start_capture", reason::REPLAY),
    forwarded("graph_stop_capture", reason::REPLAY),
    forwarded("graph_replay", reason::REPLAY),
    forwarded("flush", reason::MANAGEMENT),
    forwarded("staging", reason::MANAGEMENT),
    forwarded("supports_dtype", reason::MANAGEMENT),
    forwarded("dtype_usage", reason::MANAGEMENT),
    forwarded("device_count", reason::MANAGEMENT),
];

/// The methods of `TransactionOps`.
pub(super) const TRANSACTION: &[Entry] = &[forwarded("tr_execute", reason::TRANSFER)];

/// The methods of `DistributedOps`.
pub(super) const DISTRIBUTED: &[Entry] = &[
    composed("start_communication_server", "`all_reduce`, through Burn's gradient server"),
    composed("close_communication_server", "`all_reduce`, through Burn's gradient server"),
    composed("register_sync_parameters", "`all_reduce`, through Burn's gradient server"),
    composed("submit_sync_collective", "`all_reduce`, through Burn's gradient server"),
    composed("submit_gradient_sync", "`all_reduce`, through Burn's gradient server"),
    refused(
        "all_reduce",
        "collectives add the devices' tensors in the order the communication library chooses",
        "train in shards (the module shards), which add gradients in a fixed order on any number of devices",
    ),
    forwarded("sync_collective", reason::MANAGEMENT),
    composed("comm_device", "nothing: the tensor's device"),
    composed("float_from_ref", "nothing: the tensor itself"),
];
