//! Batches on several devices in turn, of a loader that is behind Burn's trait.

#[cfg(feature = "train")]
use burn_core::data::dataloader::DataLoader;
use burn_core::tensor::Device;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// For the `to_device` that [`deal`] calls: Burn's trait has a method for one device only.
    static DEVICES: RefCell<Option<Arc<[Device]>>> = const { RefCell::new(None) };
}

/// A view of a loader that makes batch `b` of an epoch on `devices[b % devices.len()]`; `None` where the loader is neither a
/// [`DataLoader`](super::DataLoader) nor hands `to_device` on to one.
///
/// # Panics
///
/// When there are no devices.
#[cfg(feature = "train")]
pub(crate) fn deal<O>(loader: &dyn DataLoader<O>, devices: Vec<Device>) -> Option<Arc<dyn DataLoader<O>>> {
    struct Forget;
    impl Drop for Forget {
        fn drop(&mut self) {
            DEVICES.take();
        }
    }
    let first = devices[0].clone();
    DEVICES.set(Some(devices.into()));
    let _forget = Forget;
    let view = loader.to_device(&first);
    DEVICES.take().is_none().then_some(view)
}

/// The devices of a view that `to_device` makes.
pub(super) fn devices_of_view(device: &Device) -> Arc<[Device]> {
    DEVICES.take().unwrap_or_else(|| Arc::new([device.clone()]))
}
