//! Grey images as PNG.

use anyhow::{Context, Result, ensure};
use burn::prelude::*;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Width and height of a pixel of an image, in pixels of the picture.
const ZOOM: usize = 6;

/// Writes `images` `[n, 1, height, width]`, black at 0 and white at 1, in rows of `columns` with a line between them.
///
/// # Errors
///
/// When the images cannot be read or the file cannot be written.
pub(crate) fn write_picture(path: &Path, images: Tensor<4>, columns: usize) -> Result<()> {
    let [count, channels, height, width] = images.dims();
    ensure!(channels == 1 && count > 0 && columns > 0, "a picture needs grey images, not {:?}", images.dims());
    let values = images.try_into_data()?.try_to_vec::<f32>()?;
    let (tile_height, tile_width) = (height * ZOOM + 1, width * ZOOM + 1);
    let (rows, columns) = (count.div_ceil(columns), columns.min(count));
    let (picture_height, picture_width) = (rows * tile_height, columns * tile_width);
    let mut grey = vec![64u8; picture_height * picture_width];
    for (index, value) in values.iter().enumerate() {
        let (image, y, x) = (index / (height * width), index / width % height, index % width);
        let top = image / columns * tile_height + y * ZOOM;
        let left = image % columns * tile_width + x * ZOOM;
        for row in top..top + ZOOM {
            grey[row * picture_width + left..][..ZOOM].fill((value.clamp(0.0, 1.0) * 255.0).round() as u8);
        }
    }
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), picture_width as u32, picture_height as u32);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&grey)?;
    writer.finish()?;
    Ok(())
}
