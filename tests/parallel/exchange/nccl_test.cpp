#include "muster/parallel/exchange/transport.h"
#include "tests/support/devices.h"
#include "tests/support/thrown.h"

namespace muster {
namespace {

TEST_CASE("NCCL has every function that muster uses, or the missing one is named") {
  // Finding an installed library does not need a GPU.
  if (!cudaBuilt()) return test::skip("this build has no CUDA");
  const auto missing = linksBetween({}).whyNoNccl;
  const bool known = missing.empty() || missing.find("libnccl.so.2 cannot be loaded") != std::string::npos ||
                     missing == "this build was made without NCCL's headers";
  CHECK_MESSAGE(known, missing);
}

TEST_CASE("every transport copies between two GPUs") {
  const std::vector<Device> devices = availableDevices();
  if (devices.size() < 3) return test::skip("this machine has not two GPUs");
  Context first(devices[1]), second(devices[2]);
  const Links links = muster::linksBetween(std::vector{devices[1], devices[2]});
  for (const TransportKind kind : {TransportKind::Nccl, TransportKind::Peers, TransportKind::Host}) {
    if (kind == TransportKind::Nccl && !links.whyNoNccl.empty()) continue;
    if (kind == TransportKind::Peers && !links.peers) continue;
    const auto transport = makeTransport(kind, {&first, &second}, 16);
    const Tensor one = copyTo(Tensor::of({1, 2, 3, 4}, {4}), devices[1]);
    const Tensor two = copyTo(Tensor::of({5, 6, 7, 8}, {4}), devices[2]);
    const Tensor toOne = Tensor::zeros({4}, DType::Float32, devices[1]);
    const Tensor toTwo = Tensor::zeros({4}, DType::Float32, devices[2]);
    transport.copies->run(std::vector<Transfer>{{0, 1, one, toTwo}, {1, 0, two, toOne}});
    first.synchronize();
    second.synchronize();
    CHECK(copyTo(toTwo, Device::cpu()).span<float>()[3] == 4);
    CHECK(copyTo(toOne, Device::cpu()).span<float>()[0] == 5);
    transport.copies->abort();
    if (kind == TransportKind::Nccl)
      CHECK(test::thrown<DeviceFailure>([&] {
              transport.copies->run(std::vector<Transfer>{{0, 1, one, toTwo}});
            }) == "NCCL: the exchange between GPUs was aborted after a failure");
  }
}

}  // namespace
}  // namespace muster
