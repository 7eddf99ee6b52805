//! MNIST, as Burn loads it.

use crate::Digits;
use anyhow::Result;

/// The training images and the test images.
#[cfg(feature = "mnist")]
pub fn load() -> Result<(Digits, Digits)> {
    use anyhow::anyhow;
    use burn_dataset::vision::MnistDataset;

    // Burn's loader panics where it cannot go on.
    let loaded = std::panic::catch_unwind(|| Ok((digits(&MnistDataset::train())?, digits(&MnistDataset::test())?)));
    loaded.unwrap_or_else(|_| {
        Err(anyhow!(
            "MNIST cannot be loaded, for the reason above: its first use downloads it from storage.googleapis.com to the \
             user's cache folder, `burn-dataset/mnist`; connect to the network, or remove that folder if a download was \
             cut short, or leave `--dataset mnist` out"
        ))
    })
}

/// Burn's items as ours, in 0..=1.
#[cfg(feature = "mnist")]
fn digits(items: &burn_dataset::vision::MnistDataset) -> Result<Digits> {
    use burn_dataset::Dataset;

    let digits = (0..items.len()).map(|index| {
        let item = items.get(index)?;
        let image = item.image.iter().flatten().map(|pixel| pixel / 255.0).collect();
        Ok(crate::Digit { image, label: i32::from(item.label) })
    });
    Ok(Digits::new(digits.collect::<Result<_>>()?, 28))
}

/// Says how to build with MNIST.
#[cfg(not(feature = "mnist"))]
pub fn load() -> Result<(Digits, Digits)> {
    anyhow::bail!(
        "this was built without MNIST: build with `--features examples-common/mnist` too, as in `cargo run --release \
         --features wgpu,examples-common/mnist --example digits_convnet -- --dataset mnist`"
    )
}
