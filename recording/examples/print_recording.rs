//! Prints the records of a recording, one a line: `print_recording FILE`.

use burn_deterministic_recording::Reader;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("print_recording FILE")?;
    let (header, mut reader) = Reader::open(path)?;
    println!("{header:?}");
    while let Some(record) = reader.next_record()? {
        println!("{record:?}");
    }
    println!("{:?}", reader.ending());
    Ok(())
}
