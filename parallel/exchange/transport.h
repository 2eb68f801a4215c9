#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/core/tensor/device_copies.h"

namespace muster {

/// How numbers get from one GPU's memory to another's. A transport only copies, so results do not depend on
/// it.
enum class TransportKind {
  Nccl,   ///< by NCCL, over any links between the GPUs
  Peers,  ///< by copies from GPU to GPU
  Host    ///< through pinned memory of the CPU
};

template <>
struct EnumNames<TransportKind> {
  static constexpr std::array<std::pair<TransportKind, std::string_view>, 3> kNames{{
      {TransportKind::Nccl, "NCCL"},
      {TransportKind::Peers, "peer copies"},
      {TransportKind::Host, "the host"},
  }};
};

/// @param devices  each once.
Links linksBetween(std::span<const Device> devices);

/// NCCL if it is available, else peer copies if all devices have them, else the host.
TransportKind bestTransport(const Links& links);

/// Moves bytes between devices; computes nothing.
struct Transport {
  TransportKind kind = TransportKind::Host;
  std::unique_ptr<DeviceCopies> copies;
};

/// Sends a mebibyte of known bytes from each device to each other, all at once, and compares what arrives:
/// links that lose bytes or never end are common behind an IOMMU. Waits; aborts `copies` if it throws.
/// @param limit  for all copies together.
/// @throws DeviceFailure if bytes differ, which names two devices, if the limit passes, or if `copies` fails.
void proveCopies(DeviceCopies& copies, std::span<Context* const> contexts,
                 std::chrono::milliseconds limit = std::chrono::seconds(20));

/// @param contexts  [device] one on each, on whose compute streams the copies are enqueued; they outlive the
///                  transport. Contexts on the CPU, where every transport copies memory, are for tests.
/// @param stagingBytes  for TransportKind::Host, the most that one device sends to another in one call.
/// @param failing  for tests: this transport fails, as NCCL and peer copies between GPUs may.
/// Tests the transport between GPUs: if it fails (NCCL finds too little shared memory, a peer copy is
/// refused), a warning says so and the next transport is taken.
/// @throws DeviceUnavailable for NCCL if it is not available, DeviceFailure if no transport works.
Transport makeTransport(TransportKind kind, const std::vector<Context*>& contexts, std::size_t stagingBytes,
                        std::optional<TransportKind> failing = {});

}  // namespace muster
