//! A file is read as it was written; cut anywhere, up to its last whole record; changed anywhere, not at all.

use crate::synthetic::{self, Synthetic};
use burn_deterministic_recording::{Ending, Error, Level, Reader, Record, Recording, Writer};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// Bytes of the magic and the version.
const HEAD: usize = 33;

#[test]
fn what_was_written_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = synthetic::training(3, Level::Operations);
    let read = Recording::read(written.write(folder.path(), "new folder/a")).expect("a recording");
    assert_eq!(read.header, written.header);
    assert_eq!(read.records, written.records);
    assert_eq!(read.ending, Ending::Complete);
}

#[test]
fn records_are_written_in_chunks_of_a_bounded_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a");
    let written = synthetic::training(700, Level::Operations);
    let mut writer = Writer::create(&path).expect("a file");
    writer.write(&Record::Header(written.header.clone())).expect("a header");
    for record in &written.records {
        writer.write(record).expect("a record");
    }
    writer.finish().expect("an end");
    assert!(chunks(&fs::read(&path).expect("a file")).len() > 5, "without a flush");
    assert_eq!(Recording::read(&path).expect("a recording").records, written.records);
}

#[test]
fn a_writer_that_is_dropped_leaves_a_file_that_is_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a");
    let written = synthetic::training(1, Level::Weights);
    let mut writer = Writer::create(&path).expect("a file");
    writer.write(&Record::Header(written.header)).expect("a header");
    writer.write(&written.records[0]).expect("a record");
    drop(writer);
    let read = Recording::read(&path).expect("a recording");
    assert_eq!((read.records, read.ending), (written.records[..1].to_vec(), Ending::Cut));
}

/// As by a child process that inherits the variable which names the file.
#[test]
fn a_file_has_one_writer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a");
    let written = synthetic::training(2, Level::Weights);
    let mut writer = Writer::create(&path).expect("a file");
    writer.write(&Record::Header(written.header.clone())).expect("a header");
    writer.flush().expect("a flush");
    let error = Writer::create(&path).err().expect("the file is being written");
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert!(error.to_string().contains("without that variable"), "{error}");
    writer.finish().expect("an end");
    assert_eq!(Recording::read(&path).expect("a recording").header, written.header);
    Writer::create(&path).expect("nobody writes it any more");
}

/// Where the chunks of a file end, by its lengths.
fn chunks(file: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = HEAD;
    while at < file.len() {
        at += 12 + u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes")) as usize;
        ends.push(at);
    }
    ends
}

/// Reads a file of these bytes.
fn read(folder: &Path, bytes: &[u8]) -> Result<Recording, Error> {
    let path = folder.join("changed");
    fs::write(&path, bytes).expect("a file");
    Recording::read(path)
}

#[test]
fn a_file_cut_at_any_byte_is_read_up_to_its_last_whole_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = synthetic::training(4, Level::Operations);
    let file = fs::read(written.write(folder.path(), "a")).expect("a file");
    let ends = chunks(&file);
    assert_eq!((ends.len(), *ends.last().expect("an end")), (5, file.len()), "a chunk for each step, and the end");
    // What is whole after each chunk, from the header on.
    let states = written.records.iter().enumerate().filter(|(_, record)| matches!(record, Record::State(_)));
    let mut whole: Vec<usize> = states.map(|(index, _)| index + 1).collect();
    whole.push(written.records.len());
    let mut most = 0;
    for cut in 0..file.len() {
        let read = match read(folder.path(), &file[..cut]) {
            Ok(read) => read,
            Err(Error::Empty { .. }) if most == 0 && cut < ends[0] => continue,
            Err(error) => panic!("cut at {cut}: {error}"),
        };
        let count = read.records.len();
        assert_eq!(read.ending, Ending::Cut, "cut at {cut}");
        assert_eq!(read.records, written.records[..count], "cut at {cut}");
        assert!(count >= most, "cut at {cut}: {most} records were there before");
        most = count;
        // The header is of the first chunk.
        let chunk = ends.iter().rposition(|&end| end <= cut);
        let verified = chunk.map_or(0, |chunk| whole[chunk]);
        let header = usize::from(chunk.is_none());
        assert_eq!(read.unverified as usize, count - verified + header, "cut at {cut}");
    }
    assert!(most + 1 >= written.records.len(), "the last byte is of the last record");
    // Shortly before the end of a chunk nearly all of its records are there.
    let read = read(folder.path(), &file[..ends[2] - 8]).expect("a recording");
    assert!(read.records.len() + 2 >= whole[2] && read.unverified > 4, "{} of {}", read.records.len(), whole[2]);
}

#[test]
fn a_byte_that_changed_anywhere_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = fs::read(synthetic::training(1, Level::Operations).write(folder.path(), "a")).expect("a file");
    for at in 0..file.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = file.clone();
            changed[at] ^= change;
            let read = read(folder.path(), &changed).expect_err("a byte was changed");
            let expected = match at {
                0..29 => matches!(read, Error::Magic { .. }),
                29..HEAD => matches!(read, Error::Version { .. }),
                _ => matches!(read, Error::Damaged { .. }),
            };
            assert!(expected, "byte {at} changed by {change:#x}: {read}");
        }
    }
}

#[test]
fn records_before_the_damage_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = synthetic::training(3, Level::Weights);
    let path = written.write(folder.path(), "a");
    let mut file = fs::read(&path).expect("a file");
    let last = chunks(&file)[1] + 20;
    file[last] ^= 4;
    fs::write(&path, file).expect("a file");
    let (_, mut reader) = Reader::open(&path).expect("a header");
    for record in &written.records[..3] {
        assert_eq!(reader.next_record().expect("a record").as_ref(), Some(record));
    }
    let error = reader.next_record().expect_err("the third chunk is damaged");
    assert!(matches!(error, Error::Damaged { records: 4, .. }), "{error}");
    assert!(error.to_string().contains("is damaged after record 4: a chunk has another checksum"), "{error}");
}

#[test]
fn other_files_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(matches!(Recording::read(folder.path().join("none")), Err(Error::Io { doing: "opening", .. })));
    assert!(matches!(read(folder.path(), b""), Err(Error::Empty { .. })));
    assert!(matches!(read(folder.path(), b"\x89PNG"), Err(Error::Magic { .. })));
    let no_header = Synthetic { records: vec![], ..synthetic::training(1, Level::Weights) };
    let path = folder.path().join("a");
    let mut writer = Writer::create(&path).expect("a file");
    writer.write(&synthetic::end(vec![])).expect("a record");
    writer.finish().expect("an end");
    assert!(matches!(Recording::read(&path), Err(Error::Damaged { records: 0, .. })));
    assert_eq!(Recording::read(no_header.write(folder.path(), "b")).expect("a recording").ending, Ending::Cut);
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

prop_compose! {
    fn place()(step: Option<u64>, epoch: Option<u64>, batch: Option<u64>, labels in prop::collection::vec(text(), 0..3),
        source in prop::option::of(text()), phase in 0..3_usize) -> burn_deterministic_recording::Place
    {
        use burn_deterministic_recording::{Phase, Place};
        Place { step, epoch, batch, labels, source, phase: [Phase::Forward, Phase::Backward, Phase::Update][phase] }
    }
}

prop_compose! {
    fn operation()(place in place(), thread: u32, number: u64, texts in prop::collection::vec(text(), 4),
        shape: Vec<u64>, digest: Option<[u32; 4]>, draw: Option<(u64, u64)>, origin: Option<(u64, u32)>,
        error in prop::option::of(text())) -> Record
    {
        use burn_deterministic_recording::{Digest, Draw, Operation, Origin, Output, Tensor};
        let [name, parameters, dtype, path] = <[String; 4]>::try_from(texts).expect("four");
        let origin = origin.map(|(operation, output)| Origin { operation, output });
        let input = Tensor { origin, shape: shape.clone(), dtype: dtype.clone(), parameter: Some(path.clone()) };
        let output = Output { shape, dtype, digest: digest.map(Digest), parameter: None };
        let draws = draw.map(|(key, stream)| Draw { key, stream }).into_iter().collect();
        Record::Operation(Operation {
            thread, number, place, name, is_custom: false,
            parameters, inputs: vec![input], outputs: vec![output], operands_after: vec![digest.map(Digest)],
            kernels: vec![path],
            plans: error.clone().into_iter().collect(),
            draws, error,
        })
    }
}

proptest! {
    #[test]
    fn any_records_are_read_as_written(records in prop::collection::vec(operation(), 0..20), flush: u8) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let mut writer = Writer::create(&path).expect("a file");
        let header = synthetic::header(Level::OperationsOf { first: 3, last: u64::MAX });
        writer.write(&Record::Header(header.clone())).expect("a header");
        for (index, record) in (0_u64..).zip(&records) {
            writer.write(record).expect("a record");
            if index % (1 + u64::from(flush)) == 0 {
                writer.flush().expect("a flush");
            }
        }
        writer.finish().expect("an end");
        let read = Recording::read(&path).expect("a recording");
        prop_assert_eq!((read.header, read.records, read.ending), (header, records, Ending::Cut));
    }

    #[test]
    fn any_bytes_are_an_error_or_a_recording(mut bytes: Vec<u8>, prefix in 0..40_usize) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = fs::read(synthetic::training(1, Level::Weights).write(folder.path(), "a")).expect("a file");
        bytes.splice(0..0, file[..prefix].iter().copied());
        prop_assert!(read(folder.path(), &bytes).is_err(), "no header can be read");
    }
}
