//! Behind Burn's door for backends outside Burn: a server of `Deterministic<CubeBackend>` and a client on loopback.

use crate::bits::{assert_same, floats, indices};
use crate::process::Program;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::{Device, FloatTensor, IndexingUpdateOp, IntTensor};
use burn_backend::{Backend, Distribution, ExecutionError, FloatDType, TensorData, read_sync};
use burn_cubecl::CubeBackend;
use burn_deterministic::{Deterministic, promise_deterministic};
use burn_remote::server::{BackendServer, WebSocketTransport};
use burn_remote::{HostSpec, RemoteBackend, RemoteDevice};
use std::net::TcpListener;
use tokio::runtime::Runtime;

type Direct = Deterministic<CubeBackend>;

/// A server on a port that the system picks, and a device of it.
fn serve() -> (Runtime, RemoteDevice) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = format!("ws://{}", listener.local_addr().expect("its address"));
    let server = BackendServer::<Direct>::new([crate::cube_device()]);
    // Ends with the runtime.
    drop(runtime.spawn(server.serve_async(WebSocketTransport::from_listener(listener))));
    let device = HostSpec::websocket(&host).connect(0).expect("the listener is bound");
    (runtime, device)
}

fn read<B: Backend>(tensor: FloatTensor<B>) -> Result<TensorData, ExecutionError> {
    read_sync(B::float_into_data(tensor))
}

/// Order-sensitive work, on any backend.
fn work<B: Backend>(device: &Device<B>) -> Vec<(&'static str, FloatTensor<B>)> {
    let upload = |data: TensorData| -> FloatTensor<B> { B::float_from_data(data, device) };
    let at: IntTensor<B> = B::int_from_data(indices([5000], 9), device);
    let target = upload(TensorData::zeros::<f32, _>([9]));
    vec![
        ("sum", B::float_sum(upload(floats([70_001])))),
        ("sum_dim", B::float_sum_dim(upload(floats([90, 130])), 1)),
        ("matmul", B::float_matmul(upload(floats([40, 90])), upload(floats([90, 30])))),
        ("scatter", B::float_scatter(0, target, at, upload(floats([5000])), IndexingUpdateOp::Add)),
        ("sort", B::float_sort(upload(floats([3, 4000])), 1, true)),
        ("cumsum", B::float_cumsum(upload(floats([3, 4000])), 1)),
    ]
}

/// This process has the server too, so what it promises of remote devices is so.
fn enabled_with_a_promise() {
    promise_deterministic("burn_remote", "the server serves `Deterministic<CubeBackend>`").expect("not enabled yet");
    crate::deterministic_device();
}

pub fn remote_bits() {
    enabled_with_a_promise();
    let (_server, device) = serve();
    for ((what, direct), (_, remote)) in
        work::<Direct>(&crate::cube_device()).into_iter().zip(work::<RemoteBackend>(&device))
    {
        let direct = read::<Direct>(direct).expect("computed here");
        assert_same(what, &direct, &read::<RemoteBackend>(remote).expect("computed there"));
    }
}

pub fn remote_refusal() {
    enabled_with_a_promise();
    let (_server, device) = serve();
    let before = RemoteBackend::float_from_data(floats([10]), &device);
    let random = || RemoteBackend::float_random([7].into(), Distribution::Default, &device, FloatDType::F32);
    let error = format!("{:?}", read::<RemoteBackend>(random()).expect_err("the session has no seed"));
    assert!(error.contains("no seed is set"), "{error}");
    let dependent = RemoteBackend::float_sum(random());
    let error = format!("{:?}", read::<RemoteBackend>(dependent).expect_err("computed from a refusal"));
    assert!(error.contains("no seed is set"), "{error}");
    assert_same("a tensor from before", &floats([10]), &read::<RemoteBackend>(before).expect("it was not refused"));
    let sum = || read::<RemoteBackend>(RemoteBackend::float_sum(RemoteBackend::float_from_data(floats([99]), &device)));
    assert_same("work after it", &sum().expect("the session lives"), &sum().expect("the session lives"));
}

/// What computes in another process is nothing that this one can vouch for.
pub fn remote_unknown() {
    crate::deterministic_device();
    let (_server, device) = serve();
    let sum = RemoteBackend::float_sum(RemoteBackend::float_from_data(floats([10]), &device));
    let error = format!("{:?}", read::<RemoteBackend>(sum).expect_err("nobody has promised it"));
    for part in ["`float_sum`", "another process", "promise_deterministic"] {
        assert!(error.contains(part), "{error}\nlacks\n{part}");
    }
}

#[test]
fn the_same_bits_as_without_a_server() {
    Program::new("remote_bits").run();
}

#[test]
fn a_refusal_reaches_the_client_and_the_session_lives_on() {
    Program::new("remote_refusal").run();
}

#[test]
fn a_device_of_another_process_needs_a_promise() {
    Program::new("remote_unknown").run();
}
