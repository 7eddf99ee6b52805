//! Whether the two sides have done the same work.

use burn::tensor::TensorData;

/// How far the two results may be apart.
#[derive(Clone, Copy)]
pub enum Agreement {
    /// Every element is the same but for rounding.
    Elements,
    /// The mean is the same, within a hundredth: they are random.
    Mean,
}

/// What is wrong with the results of Burn and of burn-deterministic, before anything is timed.
pub fn disagreement(agreement: Agreement, [burn, here]: &[Vec<TensorData>; 2]) -> Option<String> {
    assert_eq!(burn.len(), here.len(), "both sides have the same results");
    let several = burn.len() > 1;
    burn.iter().zip(here).enumerate().find_map(|(result, (burn, here))| {
        let difference = difference(agreement, burn, here)?;
        Some(if several { format!("result {result}: {difference}") } else { difference })
    })
}

fn difference(agreement: Agreement, burn: &TensorData, here: &TensorData) -> Option<String> {
    if burn.shape() != here.shape() {
        return Some(format!("Burn computes shape {:?}, burn-deterministic {:?}", burn.shape(), here.shape()));
    }
    let values = |data: &TensorData| data.iter::<f64>().collect::<Vec<_>>();
    let (burn, here) = (values(burn), values(here));
    let far = |&(burn, here): &(f64, f64)| {
        // A NaN is near nothing.
        let near = burn == here || (burn - here).abs() <= 1e-2 + 1e-3 * here.abs();
        !near
    };
    let (burn, here) = match agreement {
        Agreement::Elements => burn.into_iter().zip(here).find(far)?,
        Agreement::Mean => {
            let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
            Some((mean(burn), mean(here))).filter(far)?
        }
    };
    Some(format!("Burn computes {burn}, burn-deterministic {here}"))
}
