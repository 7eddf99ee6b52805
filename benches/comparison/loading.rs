//! The data loader beside Burn's, on the host alone: what the order costs, and what a second worker gains.

use crate::measure::{elapsed, medians};
use crate::table::Table;
use crate::table::Target::AtLeast;
use burn::data::dataloader::DataLoader;
use burn::data::dataloader::DataLoaderBuilder as BurnBuilder;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::data::dataset::transform::{Mapper, MapperDataset};
use burn::prelude::*;
use burn_deterministic::data::{DataLoaderBuilder, Pipeline};
use burn_deterministic::set_random_seed;
use std::hint::black_box;
use std::sync::Arc;

const BATCH: usize = 64;
const PIXELS: usize = 784;

/// As many samples as MNIST has in its test set, of a byte a pixel.
#[derive(Clone, Debug)]
struct Image(Vec<u8>);

/// As many floats as a batcher hands to the device.
struct Floats;

impl Batcher<Image, Vec<f32>> for Floats {
    fn batch(&self, images: Vec<Image>, _device: &Device) -> Vec<f32> {
        images.iter().flat_map(|image| image.0.iter().map(|&pixel| f32::from(pixel))).collect()
    }
}

/// Nothing, or about 0.2 ms of arithmetic, as decoding or turning an image takes.
#[derive(Clone, Copy)]
enum Work {
    Nothing,
    Costly,
}

impl Mapper<Image, Image> for Work {
    fn map(&self, image: &Image) -> Image {
        self.apply(image.clone())
    }
}

impl Work {
    fn apply(self, mut image: Image) -> Image {
        if let Self::Costly = self {
            for _ in 0..black_box(1600) {
                for pixel in &mut image.0 {
                    *pixel = pixel.wrapping_mul(167).rotate_left(3) ^ 13;
                }
                black_box(&image);
            }
        }
        image
    }
}

fn images(length: usize) -> InMemDataset<Image> {
    InMemDataset::new((0..length).map(|index| Image(vec![index as u8; PIXELS])).collect())
}

fn burn(length: usize, workers: usize, work: Work) -> Arc<dyn DataLoader<Vec<f32>>> {
    let builder = BurnBuilder::new(Floats).shuffle(812).batch_size(BATCH).num_workers(workers);
    match work {
        Work::Nothing => builder.build(images(length)),
        Work::Costly => builder.build(MapperDataset::new(images(length), work)),
    }
}

fn here(length: usize, workers: usize, work: Work) -> Arc<dyn DataLoader<Vec<f32>>> {
    let samples = Pipeline::new(images(length)).map(move |image| work.apply(image));
    of_pipeline(samples, workers)
}

fn of_pipeline(samples: Pipeline<Image>, workers: usize) -> Arc<dyn DataLoader<Vec<f32>>> {
    DataLoaderBuilder::new("images", Floats).shuffle(812).batch_size(BATCH).num_workers(workers).build_pipeline(samples)
}

/// Times an epoch of each of two loaders.
fn epochs(samples: usize, loaders: [Arc<dyn DataLoader<Vec<f32>>>; 2]) -> [std::time::Duration; 2] {
    medians(samples, |way, runs| {
        elapsed(|| {
            for _ in 0..runs {
                for batch in loaders[way].iter() {
                    black_box(batch.expect("images in memory"));
                }
            }
        })
    })
}

pub fn compare(table: &mut Table, samples: usize) {
    // As a program does: each batch of ours has random numbers of its own then, asked for or not.
    set_random_seed(812);
    let mut add = |name, target, loaders: &dyn Fn() -> [Arc<dyn DataLoader<Vec<f32>>>; 2]| {
        if table.wants(name) {
            eprintln!("{name}..");
            table.times(name, epochs(samples, loaders()), target);
        }
    };
    let beside = |length, workers, work| [burn(length, workers, work), here(length, workers, work)];
    add("data loader, 10,000 images, no workers", Some(AtLeast(0.95)), &|| beside(10_000, 0, Work::Nothing));
    add("data loader, 10,000 images, 1 worker", Some(AtLeast(0.95)), &|| beside(10_000, 1, Work::Nothing));
    add("data loader, 10,000 images, 2 workers", Some(AtLeast(0.95)), &|| beside(10_000, 2, Work::Nothing));
    add("data loader, 10,000 images, 2 workers, ours with a filter that leaves none out", None, &|| {
        let all = of_pipeline(Pipeline::new(images(10_000)).filter(|image| !image.0.is_empty()), 2);
        [burn(10_000, 2, Work::Nothing), all]
    });
    add("data loader, 1,000 images and work on each, 2 workers", Some(AtLeast(0.95)), &|| {
        beside(1_000, 2, Work::Costly)
    });
    add("data loader here, work on each image: 1 worker, and 2", Some(AtLeast(1.7)), &|| {
        [1, 2].map(|workers| here(1_000, workers, Work::Costly))
    });
}
