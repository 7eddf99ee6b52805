//! What the processes of a group send each other in a step.

use super::error::Error;
use super::group::messages::{Contents, Node, Taken, limit};
use super::group::{GroupError, Kind, Members, shards_of};
use super::terms::{Layout, Terms};
use super::transfer::{Copied, Reads};
use super::tree::Tree;
use burn_core::module::{Module, ParamId};
use burn_core::tensor::{Device, Tensor};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A step of a group.
pub(super) struct Round {
    members: Arc<Members>,
    step: u64,
    /// The means so far.
    means: AtomicUsize,
}

impl Round {
    pub(super) fn new(members: Arc<Members>, step: u64) -> Self {
        Self { members, step, means: AtomicUsize::new(0) }
    }

    /// The samples of all shards, of those of this process, for a step of `module`. All processes draw from one stream,
    /// whose key is `draws`.
    ///
    /// # Errors
    ///
    /// When a process fails, or differs.
    pub(super) fn begin<M: Module>(&self, own: &[usize], draws: &[u8; 32], module: &M) -> Result<Vec<usize>, Error> {
        let Self { members, step, .. } = self;
        members.check()?;
        // Gradients of another process may come before this one has its own.
        members.allow_gradients(limit(&Layout::of(module), most_nodes(members.shards), members.shards));
        let stream = *blake3::hash(draws).as_bytes();
        if members.rank > 0 {
            members.send(Kind::Begin, &Contents::of_step(*step).digest(&stream).numbers(own).0)?;
            let received = members.receive(Kind::Begun, *step)?;
            return self.take(&received[0], |taken| taken.numbers(members.shards));
        }
        let mut samples = own.to_vec();
        let mut is_complete = own.len() == self.of_rank(0).len();
        for received in members.receive(Kind::Begin, *step)? {
            let of_rank = self.of_rank(received.0);
            let (theirs, more) = self.take(&received, |taken| Ok((taken.digest()?, taken.numbers(of_rank.len())?)))?;
            self.require_alike(
                received.0,
                ("random stream", "give all threads that call `Shards::step` one seed"),
                &theirs,
                &stream,
            )?;
            if !is_complete && !more.is_empty() {
                return Err(self.differ(
                    received.0,
                    "a part of shard",
                    &of_rank.start.to_string(),
                    &format!("the last one of shard {}", samples.len().saturating_sub(1)),
                    "parts of a batch are given to the shards in order: leave none out before another",
                ));
            }
            is_complete = more.len() == of_rank.len();
            samples.extend(more);
        }
        members.send(Kind::Begun, &Contents::of_step(*step).numbers(&samples).0)?;
        Ok(samples)
    }

    /// The sum of all shards, of the sums of those of this process, on `device`; `model` is a digest of the model's
    /// bits.
    ///
    /// # Errors
    ///
    /// When a process fails, or differs, or a device fails.
    pub(super) fn fold<M: Module>(
        &self,
        tree: Tree<Terms>,
        model: &[u8; 32],
        module: &M,
        device: &Device,
    ) -> Result<Terms, Error> {
        let Self { members, step, .. } = self;
        let layout = Layout::of(module);
        let read =
            |terms: &Terms| terms.read(module).map_err(|reason| self.unreadable("the gradients", device, reason));
        let put = |copied: &Copied| Terms::put(copied, device, module);
        if members.rank > 0 {
            let nodes =
                tree.into_nodes().map(|(first, length, terms)| Ok::<Node, Error>((first, length, read(&terms)?)));
            let nodes: Vec<Node> = nodes.collect::<Result<_, _>>()?;
            let contents = Contents::of_step(*step).digest(model).nodes(&nodes, &layout);
            members.send(Kind::Nodes, &contents.0)?;
            let received = members.receive(Kind::Sums, *step)?;
            return Ok(put(&self.take(&received[0], |taken| taken.tensors(&layout))?));
        }
        let mut tree = tree;
        for received in members.receive(Kind::Nodes, *step)? {
            let of_rank = self.of_rank(received.0);
            let (theirs, nodes) = self.take(&received, |taken| {
                Ok((taken.digest()?, taken.nodes(of_rank, |taken| taken.tensors(&layout))?))
            })?;
            let remedy = "initialise the model alike, or restore the same checkpoint, in every process";
            self.require_alike(received.0, ("model", remedy), &theirs, model)?;
            for (first, length, copied) in nodes {
                tree.insert(first, length, put(&copied), |left, right| left.plus(right, module));
            }
        }
        let folded = tree.fold(|left, right| left.plus(right, module)).expect("a step has at least one sample");
        members.send(Kind::Sums, &Contents::of_step(*step).tensors(&read(&folded)?, &layout).0)?;
        Ok(folded)
    }

    /// The shards of a rank.
    fn of_rank(&self, rank: usize) -> std::ops::Range<usize> {
        shards_of(rank, self.members.size, self.members.shards)
    }

    /// What `take` finds in what a rank has sent, which is all of it.
    fn take<T>(
        &self,
        (rank, contents): &(usize, Vec<u8>),
        take: impl FnOnce(&mut Taken<'_>) -> Result<T, String>,
    ) -> Result<T, Error> {
        let mut taken = Taken::behind_the_step(contents);
        let found = take(&mut taken).and_then(|found| taken.end().map(|()| found));
        found.map_err(|reason| self.fail(GroupError::Message { peer: self.members.peer(*rank), reason }))
    }

    fn require_alike(
        &self,
        rank: usize,
        (what, remedy): (&str, &'static str),
        theirs: &[u8; 32],
        ours: &[u8; 32],
    ) -> Result<(), Error> {
        if theirs == ours {
            return Ok(());
        }
        let what = format!("another {what} in step {}:", self.step);
        let [theirs, ours] = [theirs, ours].map(|digest| blake3::Hash::from(*digest).to_hex()[..16].to_owned());
        Err(self.differ(rank, &what, &theirs, &ours, remedy))
    }

    fn differ(&self, rank: usize, what: &str, theirs: &str, ours: &str, remedy: &'static str) -> Error {
        let [peer, own] = [self.members.peer(rank), self.members.own()];
        let (what, theirs, ours) = (what.to_owned(), theirs.to_owned(), ours.to_owned());
        self.fail(GroupError::Differ { peer, own, what, theirs, ours, remedy })
    }

    fn fail(&self, failure: GroupError) -> Error {
        Error::Group(self.members.fail(failure))
    }

    fn unreadable(&self, what: &'static str, device: &Device, reason: String) -> Error {
        Error::Copy { step: self.step, what, device: format!("{device:?}"), reason }
    }
}

/// The nodes that consecutive shards of `shards` are, at most: two for each length.
fn most_nodes(shards: usize) -> usize {
    2 * (usize::BITS - shards.leading_zeros()) as usize
}

/// The sum of all shards' tensors, of the sums of those of this process.
///
/// # Errors
///
/// When a process fails, or is elsewhere in its program, or a device fails. The group has ended then.
pub(super) fn mean_in_group<const D: usize>(
    round: &Round,
    mut tree: Tree<Tensor<D>>,
    device: &Device,
) -> Result<Tensor<D>, Error> {
    let Round { members, step, means } = round;
    members.check()?;
    let number = means.fetch_add(1, Ordering::Relaxed);
    let id = ParamId::from(0_u64);
    let read = |tensor: &Tensor<D>| {
        let mut reads = Reads::default();
        reads.add(id, || tensor.clone());
        reads.execute().map_err(|reason| {
            let error = round.unreadable("a mean", device, reason);
            members.give_up(&error.to_string());
            error
        })
    };
    let of = Contents::of_step(*step).number(number);
    let tensor = |taken: &mut Taken<'_>| {
        let data = taken.tensor()?;
        match data.shape().num_dims() == D {
            true => {
                let mut copied = Copied::default();
                copied.put_in(id, data);
                Ok(copied)
            }
            false => Err(format!("a mean of {} dimensions, not {D}", data.shape().num_dims())),
        }
    };
    let is_next = |taken: &mut Taken<'_>| match taken.number()? {
        theirs if theirs == number => Ok(()),
        theirs => Err(format!("mean {theirs} of step {step}, not {number}")),
    };
    if members.rank > 0 {
        let mut contents = of;
        let nodes: Vec<_> = tree.into_nodes().collect();
        contents = contents.number(nodes.len());
        for (first, length, sum) in &nodes {
            let copied = read(sum)?;
            contents = contents.number(*first).number(*length).tensor(copied.get(id).expect("just read"));
        }
        members.send(Kind::Mean, &contents.0)?;
        let received = members.receive(Kind::Means, *step)?;
        let mean = round.take(&received[0], |taken| is_next(taken).and_then(|()| tensor(taken)))?;
        return Ok(mean.put(id, device));
    }
    for received in members.receive(Kind::Mean, *step)? {
        let of_rank = round.of_rank(received.0);
        let alike = |taken: &mut Taken<'_>| {
            let copied = tensor(taken)?;
            let theirs = copied.get(id).map(|data| data.shape().to_vec()).unwrap_or_default();
            match tree.any().map(|ours| ours.dims()) {
                Some(ours) if ours[..] != theirs[..] => Err(format!("a mean of tensors {theirs:?} and {ours:?}")),
                _ => Ok(copied),
            }
        };
        let nodes = round.take(&received, |taken| is_next(taken).and_then(|()| taken.nodes(of_rank, alike)))?;
        for (first, length, copied) in nodes {
            tree.insert(first, length, copied.put(id, device), |left, right| left + right);
        }
    }
    let mean = tree.fold(|left, right| left + right).expect("a step has at least one sample");
    members.send(Kind::Means, &of.tensor(read(&mean)?.get(id).expect("just read")).0)?;
    Ok(mean)
}
