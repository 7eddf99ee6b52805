//! What a stream finds of what another one has been given to do. One test, since the default stream waits for those of all tests.

mod driver;

use cuda_emulator::{Settings, with_settings};
use driver::{Stream, device_memory, settings};

/// What a copy on one stream finds of what another one has been given to set, where it waits for that and where it does not.
fn found(waits: bool) -> [u8; 4] {
    let memory = device_memory(4);
    let [writer, reader] = [Stream::new(), Stream::new()];
    writer.set(memory, 1, 4);
    assert_eq!(writer.synchronize(), 0);
    writer.set(memory, 2, 4);
    if waits {
        reader.wait(&writer.record());
    }
    reader.copy(memory)
}

#[test]
fn a_stream_finds_what_it_waits_for() {
    for waits in [false, true] {
        assert_eq!(with_settings(settings(None, false), || found(waits)), [2; 4], "work is done when it is given");
    }
    with_settings(Settings { queues: Some(0), ..settings(None, false) }, || {
        assert_eq!((found(false), found(true)), ([1; 4], [2; 4]));
        let memory = device_memory(4);
        Stream::new().set(memory, 3, 4);
        assert_eq!(Stream::default().copy(memory), [3; 4], "the default stream waits for all");
        Stream::new().set(memory, 4, 4);
        driver::free(memory);
    });
}
