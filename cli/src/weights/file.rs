//! Files of weights, whatever their format.

use anyhow::{Context, Result, bail};
use burn_backend::{DType, TensorData};
use burn_deterministic::Environment;
use burn_deterministic::checkpoint::{Checkpoint, Checkpoints, Content, Item};
use safetensors::{Dtype, SafeTensors};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// What a file holds.
pub struct Saved {
    /// The path, and what the file is.
    pub description: String,
    pub kind: &'static str,
    pub is_checkpoint: bool,
    /// Of a checkpoint, or of the file `environment.txt` beside it.
    pub environment: Option<Environment>,
    pub entries: Vec<Entry>,
}

/// A tensor, or something that is none, as text.
pub struct Entry {
    /// The kind of the part of a checkpoint that it is in.
    part_kind: &'static str,
    /// The name of that part.
    part: String,
    pub path: String,
    pub content: Content,
}

/// The first bytes of a checkpoint and of a burnpack.
const CHECKPOINT: &[u8] = b"\x89BDckpt\n";
const BURNPACK: &[u8] = &burn_pack::MAGIC_NUMBER.to_le_bytes();

/// The file beside weights that says in which environment they were computed.
const ENVIRONMENT: &str = "environment.txt";

impl Entry {
    pub fn is_tensor(&self) -> bool {
        matches!(self.content, Content::Tensor(_))
    }

    pub fn of_file(path: String, content: Content) -> Self {
        Self { part_kind: "", part: String::new(), path, content }
    }

    fn of_checkpoint(item: Item) -> Self {
        let Item { kind, part, path, content, .. } = item;
        let separator = if part.is_empty() || path.is_empty() || path.starts_with('[') { "" } else { "/" };
        Self { part_kind: kind, path: format!("{part}{separator}{path}"), part, content }
    }
}

impl Saved {
    /// The tensors of a module of a checkpoint, under the paths that they have in the module: of the one of this name, or of
    /// the only one.
    pub fn module(self, name: Option<&str>) -> Result<Vec<Entry>> {
        let mut modules: Vec<&str> =
            self.entries.iter().filter(|entry| entry.part_kind == "module").map(|entry| &entry.part[..]).collect();
        modules.dedup();
        let module = match (name, &modules[..]) {
            (Some(name), _) if modules.contains(&name) => name.to_owned(),
            (None, [only]) => (*only).to_owned(),
            (_, []) => bail!("{} has no module to compare with the other file", self.description),
            (Some(name), _) => bail!("{} has no module `{name}`, but {}", self.description, modules.join(", ")),
            (None, _) => {
                bail!("{} has several modules: choose one by --module, {}", self.description, modules.join(" or "))
            }
        };
        let is_in = |entry: &Entry| entry.part_kind == "module" && entry.part == module && entry.is_tensor();
        let entries = self.entries.into_iter().filter(is_in);
        Ok(entries
            .map(|entry| {
                let path = entry.path[module.len()..].trim_start_matches('/').to_owned();
                Entry::of_file(path, entry.content)
            })
            .collect())
    }
}

/// Reads a file of any of the formats, or the newest checkpoint in a folder.
///
/// # Errors
///
/// When it cannot be read, and where it is none of them.
pub fn read(path: &Path) -> Result<Saved> {
    if path.is_dir() {
        let checkpoints = Checkpoints::open(path)?.list()?;
        let Some((_, newest)) = checkpoints.last() else {
            bail!("{} is a folder without checkpoints; name a file", path.display());
        };
        return read(newest);
    }
    let mut start = Vec::new();
    let opened = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    opened
        .take(CHECKPOINT.len() as u64)
        .read_to_end(&mut start)
        .with_context(|| format!("reading {}", path.display()))?;
    if start == CHECKPOINT {
        checkpoint(path)
    } else if start.starts_with(BURNPACK) {
        burnpack(path).with_context(|| format!("reading the burnpack {}", path.display()))
    } else if path.extension().is_some_and(|extension| extension == "safetensors") {
        safetensors(path).with_context(|| format!("reading the safetensors file {}", path.display()))
    } else {
        bail!(
            "{} is no file of weights that is known: neither a checkpoint of burn-deterministic nor a burnpack by its first \
             bytes, nor a safetensors file by its name",
            path.display()
        )
    }
}

fn checkpoint(path: &Path) -> Result<Saved> {
    let checkpoint = Checkpoint::load(path)?;
    Ok(Saved {
        description: checkpoint.to_string(),
        kind: "checkpoint",
        is_checkpoint: true,
        environment: Some(checkpoint.environment()),
        entries: checkpoint.contents().into_iter().map(Entry::of_checkpoint).collect(),
    })
}

fn saved(path: &Path, kind: &'static str, entries: Vec<Entry>) -> Result<Saved> {
    let description = format!("the {kind} `{}`", path.display());
    Ok(Saved { description, kind, is_checkpoint: false, environment: beside(path)?, entries })
}

/// The environment in the folder of a file.
fn beside(path: &Path) -> Result<Option<Environment>> {
    let file = path.with_file_name(ENVIRONMENT);
    if !file.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let environment = Environment::parse(&text);
    environment.with_context(|| format!("{} is no environment: a line has no colon", file.display())).map(Some)
}

/// Parameters' ids are random, and left out.
fn burnpack(path: &Path) -> Result<Saved> {
    let reader = burn_pack::Reader::from_file_exact(path)?;
    let metadata = reader.metadata().iter().map(|(name, value)| (format!("metadata {name}"), value.clone()));
    let scalars = reader.scalars().iter().map(|(name, value)| (name.clone(), format!("{value:?}")));
    let texts = metadata.chain(scalars).map(|(name, text)| Entry::of_file(name, Content::Text(text)));
    let mut entries: Vec<Entry> = texts.collect();
    for tensor in reader.into_tensors()? {
        let (name, dtype, shape, _, bytes) = tensor.into_parts()?;
        let data = TensorData::try_from_bytes(bytes, shape, dtype).with_context(|| format!("its tensor `{name}`"))?;
        entries.push(Entry::of_file(name, Content::Tensor(data)));
    }
    saved(path, "burnpack", entries)
}

fn safetensors(path: &Path) -> Result<Saved> {
    let bytes = fs::read(path)?;
    let (_, metadata) = SafeTensors::read_metadata(&bytes)?;
    let mut entries: Vec<Entry> = metadata
        .metadata()
        .iter()
        .flatten()
        .map(|(name, value)| Entry::of_file(format!("metadata {name}"), Content::Text(value.clone())))
        .collect();
    // Their order in the header is that of their elements' sizes.
    for (name, tensor) in SafeTensors::deserialize(&bytes)?.tensors() {
        let (name, shape, dtype) = match dtype(tensor.dtype()) {
            Some(dtype) => (name, tensor.shape().to_vec(), dtype),
            None => (format!("{name} (bytes of {:?})", tensor.dtype()), vec![tensor.data().len()], DType::U8),
        };
        let data = TensorData::try_from_bytes_vec(tensor.data().to_vec(), shape, dtype);
        let data = data.with_context(|| format!("its tensor `{name}`"))?;
        entries.push(Entry::of_file(name, Content::Tensor(data)));
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    saved(path, "safetensors file", entries)
}

/// Burn's name of a dtype; `None` where Burn does not have it.
fn dtype(dtype: Dtype) -> Option<DType> {
    Some(match dtype {
        Dtype::F64 => DType::F64,
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::I64 => DType::I64,
        Dtype::I32 => DType::I32,
        Dtype::I16 => DType::I16,
        Dtype::I8 => DType::I8,
        Dtype::U64 => DType::U64,
        Dtype::U32 => DType::U32,
        Dtype::U16 => DType::U16,
        Dtype::U8 => DType::U8,
        Dtype::BOOL => DType::Bool(burn_backend::BoolStore::Native),
        _ => return None,
    })
}
